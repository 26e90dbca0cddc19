// SPDX-License-Identifier: GPL-2.0
/* Buffers, protection domains, completion queues and regions. */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kverbs.h"

#define ALIGNMENT 65536 /* of a buffer's address, which is what the allocator gives to a block of that size */
#define MAX_BUFFER (2 * 1024 * 1024)

/* -- buffers --------------------------------------------------------------------------------------- */

/*
 * A buffer is a block of pages, larger by at least a page than what was asked for: no other buffer begins where it
 * ends.  Software devices reach memory by its address in the kernel's own map, so that page cannot be unmapped; it
 * belongs to nobody instead.
 */
int kv_alloc_buffer(struct kv_context *ctx, struct kverbs_call *call)
{
	struct ib_device *dev = ctx->dev;
	struct kv_buf *buf;
	size_t size;
	int err;

	if (!call->in[0] || call->in[0] > MAX_BUFFER)
		return call->in[0] ? -ENOMEM : -EINVAL;
	buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	buf->length = call->in[0];
	size = max_t(size_t, ALIGNMENT, PAGE_ALIGN(buf->length) + PAGE_SIZE);
	buf->order = get_order(size);
	err = -ENOMEM;
	buf->pages = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, buf->order);
	if (!buf->pages)
		goto free_buf;
	buf->addr = ib_dma_map_page(dev, buf->pages, 0, PAGE_SIZE << buf->order, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, buf->addr))
		goto free_pages;
	if (buf->addr % ALIGNMENT) /* an IOMMU that maps by single pages */
		goto unmap;
	err = kv_add(ctx, &buf->base, KV_BUF);
	if (err)
		goto unmap;
	call->out[0] = buf->base.handle;
	call->out[1] = buf->addr;
	return 0;
unmap:
	ib_dma_unmap_page(dev, buf->addr, PAGE_SIZE << buf->order, DMA_BIDIRECTIONAL);
free_pages:
	__free_pages(buf->pages, buf->order);
free_buf:
	kfree(buf);
	return err;
}

void kv_bury(struct kv_context *ctx, struct kv_buf *buf)
{
	xa_erase(&ctx->objects, buf->base.handle);
	list_add(&buf->node, &ctx->graves);
}

void kv_free_graves(struct kv_context *ctx)
{
	struct kv_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &ctx->graves, node) {
		list_del(&buf->node);
		ib_dma_unmap_page(ctx->dev, buf->addr, PAGE_SIZE << buf->order, DMA_BIDIRECTIONAL);
		__free_pages(buf->pages, buf->order);
		kfree(buf);
	}
}

int kv_free_buffer(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_buf *buf = kv_find(ctx, call->in[0], KV_BUF);

	if (!buf)
		return -EINVAL;
	kv_bury(ctx, buf);
	return 0;
}

/* The place of a request's bytes in a buffer; NULL if they are not inside. */
static void *bytes_of(struct kv_context *ctx, struct kverbs_call *call, struct kv_buf **found)
{
	struct kv_buf *buf = kv_find(ctx, call->in[0], KV_BUF);
	u64 offset = call->in[1];

	if (!buf || offset > buf->length || call->count > buf->length - offset)
		return NULL;
	*found = buf;
	return page_address(buf->pages) + offset;
}

int kv_write_buffer(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_buf *buf;
	void *bytes = bytes_of(ctx, call, &buf);

	if (!bytes)
		return -EINVAL;
	if (copy_from_user(bytes, u64_to_user_ptr(call->list), call->count))
		return -EFAULT;
	ib_dma_sync_single_for_device(ctx->dev, buf->addr, buf->length, DMA_BIDIRECTIONAL);
	return 0;
}

int kv_read_buffer(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_buf *buf;
	void *bytes = bytes_of(ctx, call, &buf);

	if (!bytes)
		return -EINVAL;
	ib_dma_sync_single_for_cpu(ctx->dev, buf->addr, buf->length, DMA_BIDIRECTIONAL);
	return copy_to_user(u64_to_user_ptr(call->list), bytes, call->count) ? -EFAULT : 0;
}

static bool holds(const struct kv_buf *buf, u64 addr, u64 length)
{
	u64 size = PAGE_SIZE << buf->order;

	return addr >= buf->addr && addr - buf->addr <= size && length <= size - (addr - buf->addr);
}

/* Whether memory belongs to a buffer of this context, freed ones and the space behind a buffer included. */
bool kv_is_ours(struct kv_context *ctx, u64 addr, u64 length)
{
	struct kv_object *object;
	unsigned long handle;
	struct kv_buf *buf;

	xa_for_each(&ctx->objects, handle, object)
		if (object->kind == KV_BUF && holds(container_of(object, struct kv_buf, base), addr, length))
			return true;
	list_for_each_entry(buf, &ctx->graves, node)
		if (holds(buf, addr, length))
			return true;
	return false;
}

/* -- protection domains ---------------------------------------------------------------------------- */

int kv_alloc_pd(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_pd *pd = kzalloc(sizeof(*pd), GFP_KERNEL);
	int err;

	if (!pd)
		return -ENOMEM;
	pd->pd = ib_alloc_pd(ctx->dev, 0);
	if (IS_ERR(pd->pd)) {
		err = PTR_ERR(pd->pd);
		kfree(pd);
		return err;
	}
	err = kv_add(ctx, &pd->base, KV_PD);
	if (err) {
		ib_dealloc_pd(pd->pd);
		kfree(pd);
		return err;
	}
	call->out[0] = pd->base.handle;
	call->out[1] = pd->pd->local_dma_lkey;
	return 0;
}

/* The core frees a protection domain that is in use, with a warning at most; so that is refused here. */
int kv_drop_pd(struct kv_context *ctx, struct kv_pd *pd)
{
	if (pd->base.users)
		return -EBUSY;
	ib_dealloc_pd(pd->pd);
	kv_remove(ctx, &pd->base);
	return 0;
}

int kv_dealloc_pd(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_pd *pd = kv_find(ctx, call->in[0], KV_PD);

	return pd ? kv_drop_pd(ctx, pd) : -EINVAL;
}

/* -- completion queues ----------------------------------------------------------------------------- */

static void completion_comes(struct ib_cq *cq, void *context)
{
	struct kv_cq *ours = context;

	atomic64_inc(&ours->events);
}

static void cq_event_comes(struct ib_event *event, void *context)
{
}

int kv_create_cq(struct kv_context *ctx, struct kverbs_call *call)
{
	struct ib_cq_init_attr attr = {};
	struct kv_cq *cq;
	int err;

	/* Of no entries at all the core of 7.2 warns, which a tester must take for a defect; it says EINVAL too. */
	if (!call->in[0] || !kv_fits(call->in[0], INT_MAX))
		return -EINVAL;
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return -ENOMEM;
	attr.cqe = call->in[0];
	cq->cq = ib_create_cq(ctx->dev, completion_comes, cq_event_comes, cq, &attr);
	if (IS_ERR(cq->cq)) {
		err = PTR_ERR(cq->cq);
		kfree(cq);
		return err;
	}
	err = kv_add(ctx, &cq->base, KV_CQ);
	if (err) {
		ib_destroy_cq(cq->cq);
		kfree(cq);
		return err;
	}
	call->out[0] = cq->base.handle;
	call->out[1] = cq->cq->cqe;
	return 0;
}

/* The wrapper of this that drivers use throws the result away; it is what is asked for here. */
int kv_drop_cq(struct kv_context *ctx, struct kv_cq *cq)
{
	int err = ib_destroy_cq_user(cq->cq, NULL);

	if (!err)
		kv_remove(ctx, &cq->base);
	return err;
}

int kv_destroy_cq(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_cq *cq = kv_find(ctx, call->in[0], KV_CQ);

	return cq ? kv_drop_cq(ctx, cq) : -EINVAL;
}

int kv_arm_cq(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_cq *cq = kv_find(ctx, call->in[0], KV_CQ);
	int err;

	if (!cq)
		return -EINVAL;
	err = ib_req_notify_cq(cq->cq, call->in[1] ? IB_CQ_SOLICITED : IB_CQ_NEXT_COMP);
	call->out[0] = atomic64_read(&cq->events);
	return err < 0 ? err : 0;
}

/* -- regions --------------------------------------------------------------------------------------- */

int kv_alloc_mr(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_pd *pd = kv_find(ctx, call->in[0], KV_PD);
	struct kv_mr *mr;
	int err;

	if (!pd || !kv_fits(call->in[1], U32_MAX))
		return -EINVAL;
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return -ENOMEM;
	mr->mr = ib_alloc_mr(pd->pd, IB_MR_TYPE_MEM_REG, call->in[1]);
	if (IS_ERR(mr->mr)) {
		err = PTR_ERR(mr->mr);
		kfree(mr);
		return err;
	}
	err = kv_add(ctx, &mr->base, KV_MR);
	if (err) {
		ib_dereg_mr(mr->mr);
		kfree(mr);
		return err;
	}
	mr->pd = pd;
	pd->base.users++;
	mr->max = call->in[1];
	call->out[0] = mr->base.handle;
	call->out[1] = mr->mr->lkey;
	call->out[2] = mr->mr->rkey;
	return 0;
}

/* A page size of 0 would keep the core busy for ever, and foreign addresses would open the kernel's memory. */
int kv_map_mr_sg(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_mr *mr = kv_find(ctx, call->in[0], KV_MR);
	unsigned int offset, page_size;
	struct kverbs_sge *elements;
	struct scatterlist *sg;
	int i, n;

	if (!mr || !kv_fits(call->in[1], UINT_MAX) || !kv_fits(call->in[2], UINT_MAX) || !call->in[2] ||
	    call->count > KVERBS_MAX_LIST)
		return -EINVAL;
	offset = call->in[1];
	page_size = call->in[2];
	elements = memdup_user(u64_to_user_ptr(call->list), call->count * sizeof(*elements));
	if (IS_ERR(elements))
		return PTR_ERR(elements);
	n = -ENOMEM;
	sg = kcalloc(max(call->count, 1U), sizeof(*sg), GFP_KERNEL);
	if (!sg)
		goto free_elements;
	sg_init_table(sg, max(call->count, 1U));
	for (i = 0; i < call->count; i++) {
		n = -EFAULT;
		if (elements[i].length > UINT_MAX || !kv_is_ours(ctx, elements[i].addr, elements[i].length))
			goto free_sg;
		sg_dma_address(&sg[i]) = elements[i].addr;
		sg_dma_len(&sg[i]) = elements[i].length;
		sg[i].length = elements[i].length;
	}
	n = ib_map_mr_sg(mr->mr, sg, call->count, &offset, page_size);
	if (n >= 0) {
		call->out[0] = n;
		call->out[1] = mr->mr->iova;
		call->out[2] = mr->mr->length;
		n = 0;
	}
free_sg:
	kfree(sg);
free_elements:
	kfree(elements);
	return n;
}

int kv_update_fast_reg_key(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_mr *mr = kv_find(ctx, call->in[0], KV_MR);

	if (!mr || !kv_fits(call->in[1], U8_MAX))
		return -EINVAL;
	ib_update_fast_reg_key(mr->mr, call->in[1]);
	call->out[0] = mr->mr->lkey;
	call->out[1] = mr->mr->rkey;
	return 0;
}

/* A posted registration holds a bare pointer to its region, so one that may not be done yet keeps it here. */
int kv_drop_mr(struct kv_context *ctx, struct kv_mr *mr)
{
	int err;

	if (mr->base.users)
		return -EBUSY;
	err = ib_dereg_mr(mr->mr);
	if (err)
		return err;
	mr->pd->base.users--;
	kv_remove(ctx, &mr->base);
	return 0;
}

int kv_dereg_mr(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_mr *mr = kv_find(ctx, call->in[0], KV_MR);

	return mr ? kv_drop_mr(ctx, mr) : -EINVAL;
}
