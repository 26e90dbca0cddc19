// SPDX-License-Identifier: GPL-2.0
/* Work requests and completions. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kverbs.h"

/* -- which sends the driver may still hold --------------------------------------------------------- */

static void retire(struct kv_posted *posted)
{
	if (posted->mr)
		posted->mr->base.users--;
	list_del(&posted->node);
	kfree(posted);
}

void kv_retire_all(struct kv_qp *qp)
{
	struct kv_posted *posted, *next;

	list_for_each_entry_safe(posted, next, &qp->posted, node)
		retire(posted);
}

/* A polled completion retires its send and those before it, which were done without completions. */
static void retire_up_to(struct kv_qp *qp, u64 wr_id)
{
	struct kv_posted *posted, *next;
	bool known = false;

	list_for_each_entry(posted, &qp->posted, node)
		known |= posted->wr_id == wr_id;
	if (!known) /* that of a receive */
		return;
	list_for_each_entry_safe(posted, next, &qp->posted, node) {
		bool last = posted->wr_id == wr_id;

		retire(posted);
		if (last)
			break;
	}
}

/* -- posting --------------------------------------------------------------------------------------- */

/* Whether a key is one of those that open all memory. */
static bool is_reserved(struct kv_context *ctx, u32 lkey)
{
	struct kv_object *object;
	unsigned long handle;

	xa_for_each(&ctx->objects, handle, object)
		if (object->kind == KV_PD && container_of(object, struct kv_pd, base)->pd->local_dma_lkey == lkey)
			return true;
	return false;
}

/* The elements of a request in the kernel's form; an error pointer if one is dangerous. */
static struct ib_sge *take_sges(struct kv_context *ctx, const struct kverbs_call *call)
{
	struct kverbs_sge *elements;
	struct ib_sge *sges;
	int i, err;

	if (call->count > KVERBS_MAX_LIST)
		return ERR_PTR(-EINVAL);
	elements = memdup_user(u64_to_user_ptr(call->list), call->count * sizeof(*elements));
	if (IS_ERR(elements))
		return ERR_CAST(elements);
	sges = kcalloc(max(call->count, 1U), sizeof(*sges), GFP_KERNEL);
	err = sges ? 0 : -ENOMEM;
	for (i = 0; !err && i < call->count; i++) {
		const struct kverbs_sge *e = &elements[i];

		if (e->length > U32_MAX || e->lkey > U32_MAX)
			err = -EINVAL;
		else if (e->length && is_reserved(ctx, e->lkey) && !kv_is_ours(ctx, e->addr, e->length))
			err = -EFAULT;
		sges[i].addr = e->addr;
		sges[i].length = e->length;
		sges[i].lkey = e->lkey;
	}
	kfree(elements);
	if (err) {
		kfree(sges);
		return ERR_PTR(err);
	}
	return sges;
}

int kv_post_send(struct kv_context *ctx, struct kverbs_call *call)
{
	const u64 *in = call->in;
	struct kv_qp *qp = kv_find(ctx, in[KV_WR_QP], KV_QP);
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr plain = {}, *wr = &plain;
	struct ib_rdma_wr rdma = {};
	struct kv_posted *posted;
	struct kv_mr *mr = NULL;
	struct ib_reg_wr reg = {};
	int err;

	if (!qp || !kv_fits(in[KV_WR_RKEY], U32_MAX) || !kv_fits(in[KV_WR_INVALIDATE_RKEY], U32_MAX) ||
	    !kv_fits(in[KV_WR_KEY], U32_MAX) || !kv_fits(in[KV_WR_ACCESS], U8_MAX))
		return -EINVAL;
	switch (in[KV_WR_OPCODE]) {
	case KV_OP_SEND:
		wr->opcode = IB_WR_SEND;
		break;
	case KV_OP_SEND_WITH_INV:
		wr->opcode = IB_WR_SEND_WITH_INV;
		wr->ex.invalidate_rkey = in[KV_WR_INVALIDATE_RKEY];
		break;
	case KV_OP_LOCAL_INV:
		wr->opcode = IB_WR_LOCAL_INV;
		wr->ex.invalidate_rkey = in[KV_WR_INVALIDATE_RKEY];
		break;
	case KV_OP_RDMA_WRITE:
	case KV_OP_RDMA_READ:
		wr = &rdma.wr;
		wr->opcode = in[KV_WR_OPCODE] == KV_OP_RDMA_WRITE ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
		rdma.remote_addr = in[KV_WR_REMOTE_ADDR];
		rdma.rkey = in[KV_WR_RKEY];
		break;
	case KV_OP_REG_MR:
		mr = kv_find(ctx, in[KV_WR_MR], KV_MR);
		if (!mr)
			return -EINVAL;
		wr = &reg.wr;
		wr->opcode = IB_WR_REG_MR;
		reg.mr = mr->mr;
		reg.key = in[KV_WR_KEY];
		reg.access = in[KV_WR_ACCESS];
		break;
	default:
		return -EOPNOTSUPP;
	}
	wr->wr_id = in[KV_WR_ID];
	wr->send_flags = (in[KV_WR_SIGNALED] ? IB_SEND_SIGNALED : 0) | (in[KV_WR_FENCE] ? IB_SEND_FENCE : 0);
	wr->sg_list = take_sges(ctx, call);
	if (IS_ERR(wr->sg_list))
		return PTR_ERR(wr->sg_list);
	wr->num_sge = call->count;
	posted = kzalloc(sizeof(*posted), GFP_KERNEL);
	err = posted ? ib_post_send(qp->qp, wr, &bad) : -ENOMEM;
	if (!err) {
		posted->wr_id = wr->wr_id;
		posted->mr = mr;
		if (mr)
			mr->base.users++;
		list_add_tail(&posted->node, &qp->posted);
	} else {
		kfree(posted);
	}
	kfree(wr->sg_list);
	return err;
}

int kv_post_recv(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_qp *qp = kv_find(ctx, call->in[0], KV_QP);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr = {};
	int err;

	if (!qp)
		return -EINVAL;
	wr.wr_id = call->in[1];
	wr.sg_list = take_sges(ctx, call);
	if (IS_ERR(wr.sg_list))
		return PTR_ERR(wr.sg_list);
	wr.num_sge = call->count;
	err = ib_post_recv(qp->qp, &wr, &bad);
	kfree(wr.sg_list);
	return err;
}

/* -- completions ----------------------------------------------------------------------------------- */

static struct kv_qp *living(struct kv_context *ctx, const struct ib_qp *qp)
{
	struct kv_object *object;
	unsigned long handle;

	xa_for_each(&ctx->objects, handle, object)
		if (object->kind == KV_QP && container_of(object, struct kv_qp, base)->qp == qp)
			return container_of(object, struct kv_qp, base);
	return NULL;
}

/* The number of a queue pair that is no more. */
static u32 number_of_ghost(struct kv_context *ctx, const struct ib_qp *qp)
{
	struct kv_ghost *ghost;

	list_for_each_entry(ghost, &ctx->ghosts, node)
		if (ghost->qp == qp)
			return ghost->num;
	return 0;
}

static u64 opcode_of(const struct ib_wc *wc)
{
	switch (wc->opcode) {
	case IB_WC_SEND:
		return KV_OP_SEND;
	case IB_WC_RDMA_WRITE:
		return KV_OP_RDMA_WRITE;
	case IB_WC_RDMA_READ:
		return KV_OP_RDMA_READ;
	case IB_WC_LOCAL_INV:
		return KV_OP_LOCAL_INV;
	case IB_WC_REG_MR:
		return KV_OP_REG_MR;
	case IB_WC_RECV:
		return KV_OP_RECV;
	default:
		return KV_OP_OTHER;
	}
}

int kv_poll_cq(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_cq *cq = kv_find(ctx, call->in[0], KV_CQ);
	struct ib_wc wc = {};
	struct kv_qp *qp;
	int n;

	if (!cq)
		return -EINVAL;
	n = ib_poll_cq(cq->cq, 1, &wc);
	if (n <= 0)
		return n;
	qp = living(ctx, wc.qp);
	call->out[0] = n;
	call->out[1] = wc.wr_id;
	call->out[2] = wc.status;
	call->out[3] = opcode_of(&wc);
	call->out[4] = qp ? qp->qp->qp_num : number_of_ghost(ctx, wc.qp);
	call->out[5] = wc.byte_len;
	call->out[6] = wc.wc_flags & IB_WC_WITH_INVALIDATE;
	call->out[7] = wc.ex.invalidate_rkey;
	if (qp && !(wc.status == IB_WC_SUCCESS && wc.opcode & IB_WC_RECV))
		retire_up_to(qp, wc.wr_id);
	return 0;
}
