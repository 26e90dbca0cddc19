// SPDX-License-Identifier: GPL-2.0
/*
 * kverbs: the kernel's verbs, one call at a time, for a program in user space that tests them.
 *
 * Theory of operation
 * -------------------
 * Fast registration has no interface in user space, so a conformance suite needs somebody in the kernel to make its
 * calls.  This module makes them and nothing else: it checks a request only as far as memory of the kernel depends on
 * it, hands it to the verbs layer and answers with what came back.  It refuses
 *
 *   - a handle that is none, a number that the kernel's type cannot hold, a list that is too long:  EINVAL
 *   - an address for the reserved key, or in a scatter list, outside of the context's own buffers:  EFAULT
 *   - freeing what is still used where the core would only warn, or not notice: a protection domain with objects
 *     in it, a region with a registration posted and not known to be done:                          EBUSY
 *
 * Everything else, sense or nonsense, is the driver's to judge.
 *
 * Memory of a buffer that was freed is kept until the context is closed, when no queue pair is left that could reach
 * it.  If the device goes, its contexts lose their objects and answer ENODEV.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "kverbs.h"

/* Protects the two lists below and ctx->dev against a device that goes. */
static DEFINE_MUTEX(registry);
static LIST_HEAD(devices);
static LIST_HEAD(contexts);

struct kv_device {
	struct list_head node;
	struct ib_device *dev;
};

/* -- objects by handle ----------------------------------------------------------------------------- */

void *kv_find(struct kv_context *ctx, u64 handle, enum kv_kind kind)
{
	struct kv_object *object;

	if (!handle || handle > U32_MAX)
		return NULL;
	object = xa_load(&ctx->objects, handle);
	return object && object->kind == kind ? object : NULL;
}

int kv_add(struct kv_context *ctx, struct kv_object *object, enum kv_kind kind)
{
	object->kind = kind;
	return xa_alloc(&ctx->objects, &object->handle, object, xa_limit_31b, GFP_KERNEL);
}

void kv_remove(struct kv_context *ctx, struct kv_object *object)
{
	xa_erase(&ctx->objects, object->handle);
	kfree(object);
}

bool kv_fits(u64 value, u64 max)
{
	return value <= max;
}

static int drop(struct kv_context *ctx, struct kv_object *object)
{
	switch (object->kind) {
	case KV_QP:
		return kv_drop_qp(ctx, container_of(object, struct kv_qp, base));
	case KV_MR:
		return kv_drop_mr(ctx, container_of(object, struct kv_mr, base));
	case KV_CQ:
		return kv_drop_cq(ctx, container_of(object, struct kv_cq, base));
	case KV_PD:
		return kv_drop_pd(ctx, container_of(object, struct kv_pd, base));
	case KV_BUF:
		kv_bury(ctx, container_of(object, struct kv_buf, base));
		return 0;
	default:
		return -EINVAL;
	}
}

/* Destroy all objects of a context, users before what they use. */
static void clear(struct kv_context *ctx)
{
	struct kv_object *object;
	unsigned long handle;
	bool stuck = false;
	int kind, err;

	for (kind = 0; kind < KV_KINDS; kind++) {
		xa_for_each(&ctx->objects, handle, object) {
			if (object->kind != kind)
				continue;
			/* What a driver will not give back is lost, and so are the pages that it might reach. */
			if (kind == KV_BUF && stuck) {
				xa_erase(&ctx->objects, handle);
				continue;
			}
			err = drop(ctx, object);
			if (err) {
				pr_err("kverbs: object %lu of kind %d cannot be destroyed: %d; it is lost\n", handle,
				       kind, err);
				xa_erase(&ctx->objects, handle);
				stuck = true;
			}
		}
	}
	if (!stuck)
		kv_free_graves(ctx);
	kv_free_ghosts(ctx);
}

/* -- the character device -------------------------------------------------------------------------- */

static int kv_open(struct inode *inode, struct file *file)
{
	struct kv_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);

	if (!ctx)
		return -ENOMEM;
	mutex_init(&ctx->lock);
	xa_init_flags(&ctx->objects, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&ctx->graves);
	INIT_LIST_HEAD(&ctx->ghosts);
	mutex_lock(&registry);
	list_add(&ctx->node, &contexts);
	mutex_unlock(&registry);
	file->private_data = ctx;
	return 0;
}

static int kv_release(struct inode *inode, struct file *file)
{
	struct kv_context *ctx = file->private_data;

	mutex_lock(&registry);
	list_del(&ctx->node);
	if (ctx->dev)
		clear(ctx);
	mutex_unlock(&registry);
	xa_destroy(&ctx->objects);
	kfree(ctx);
	return 0;
}

static int open_device(struct kv_context *ctx, void __user *arg)
{
	const struct ib_device_attr *attrs;
	struct kv_device *entry;
	struct kverbs_open *request;
	int err = -ENODEV;

	request = memdup_user(arg, sizeof(*request));
	if (IS_ERR(request))
		return PTR_ERR(request);
	request->name[KVERBS_NAME_LEN - 1] = 0;
	mutex_lock(&registry);
	mutex_lock(&ctx->lock);
	if (ctx->dev) {
		err = -EBUSY;
		goto out;
	}
	list_for_each_entry(entry, &devices, node) {
		if (strcmp(dev_name(&entry->dev->dev), request->name))
			continue;
		ctx->dev = entry->dev;
		attrs = &ctx->dev->attrs;
		memset(request->fw, 0, sizeof(request->fw));
		snprintf(request->fw, sizeof(request->fw), "%llx", attrs->fw_ver);
		request->max_qp_wr = attrs->max_qp_wr;
		request->max_cqe = attrs->max_cqe;
		request->max_sge = attrs->max_send_sge;
		request->max_fast_reg_page_list_len = attrs->max_fast_reg_page_list_len;
		request->page_size_cap = attrs->page_size_cap;
		request->device_cap_flags = attrs->device_cap_flags;
		request->iwarp = rdma_protocol_iwarp(ctx->dev, rdma_start_port(ctx->dev));
		err = copy_to_user(arg, request, sizeof(*request)) ? -EFAULT : 0;
		break;
	}
out:
	mutex_unlock(&ctx->lock);
	mutex_unlock(&registry);
	kfree(request);
	return err;
}

typedef int (*kv_handler)(struct kv_context *ctx, struct kverbs_call *call);

static const kv_handler handlers[KV_VERBS] = {
	[KV_ALLOC_BUFFER] = kv_alloc_buffer,
	[KV_FREE_BUFFER] = kv_free_buffer,
	[KV_WRITE_BUFFER] = kv_write_buffer,
	[KV_READ_BUFFER] = kv_read_buffer,
	[KV_ALLOC_PD] = kv_alloc_pd,
	[KV_DEALLOC_PD] = kv_dealloc_pd,
	[KV_CREATE_CQ] = kv_create_cq,
	[KV_DESTROY_CQ] = kv_destroy_cq,
	[KV_POLL_CQ] = kv_poll_cq,
	[KV_ARM_CQ] = kv_arm_cq,
	[KV_CREATE_QP] = kv_create_qp,
	[KV_DESTROY_QP] = kv_destroy_qp,
	[KV_MODIFY_QP] = kv_modify_qp,
	[KV_QUERY_QP] = kv_query_qp,
	[KV_ALLOC_MR] = kv_alloc_mr,
	[KV_MAP_MR_SG] = kv_map_mr_sg,
	[KV_UPDATE_FAST_REG_KEY] = kv_update_fast_reg_key,
	[KV_DEREG_MR] = kv_dereg_mr,
	[KV_POST_SEND] = kv_post_send,
	[KV_POST_RECV] = kv_post_recv,
	[KV_MODIFY_QP_IS_OK] = kv_modify_qp_is_ok,
	[KV_CONNECT_QP] = kv_connect_qp,
};

static int call_verb(struct kv_context *ctx, void __user *arg)
{
	struct kverbs_call *call;
	int err;

	call = memdup_user(arg, sizeof(*call));
	if (IS_ERR(call))
		return PTR_ERR(call);
	memset(call->out, 0, sizeof(call->out));
	mutex_lock(&ctx->lock);
	if (call->verb >= KV_VERBS || !handlers[call->verb])
		err = -ENOSYS;
	else if (!ctx->dev)
		err = -ENODEV;
	else
		err = handlers[call->verb](ctx, call);
	mutex_unlock(&ctx->lock);
	if (copy_to_user(arg, call, sizeof(*call)))
		err = -EFAULT;
	kfree(call);
	return err;
}

static long kv_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	switch (command) {
	case KVERBS_OPEN:
		return open_device(file->private_data, (void __user *)arg);
	case KVERBS_CALL:
		return call_verb(file->private_data, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = kv_open,
	.release = kv_release,
	.unlocked_ioctl = kv_ioctl,
};

static struct miscdevice character_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kverbs",
	.fops = &operations,
	.mode = 0600,
};

/* -- devices that come and go ---------------------------------------------------------------------- */

static int device_comes(struct ib_device *dev)
{
	struct kv_device *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return -ENOMEM;
	entry->dev = dev;
	mutex_lock(&registry);
	list_add(&entry->node, &devices);
	mutex_unlock(&registry);
	return 0;
}

static void device_goes(struct ib_device *dev, void *data)
{
	struct kv_device *entry, *next;
	struct kv_context *ctx;

	mutex_lock(&registry);
	list_for_each_entry_safe(entry, next, &devices, node) {
		if (entry->dev == dev) {
			list_del(&entry->node);
			kfree(entry);
		}
	}
	list_for_each_entry(ctx, &contexts, node) {
		mutex_lock(&ctx->lock);
		if (ctx->dev == dev) {
			clear(ctx);
			ctx->dev = NULL;
		}
		mutex_unlock(&ctx->lock);
	}
	mutex_unlock(&registry);
}

static struct ib_client client = {
	.name = "kverbs",
	.add = device_comes,
	.remove = device_goes,
};

static int __init kv_init(void)
{
	int err = ib_register_client(&client);

	if (err)
		return err;
	err = misc_register(&character_device);
	if (err)
		ib_unregister_client(&client);
	return err;
}

static void __exit kv_exit(void)
{
	misc_deregister(&character_device);
	ib_unregister_client(&client);
}

module_init(kv_init);
module_exit(kv_exit);
MODULE_DESCRIPTION("Kernel verbs for a conformance suite in user space");
MODULE_LICENSE("GPL");
