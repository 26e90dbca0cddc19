/* SPDX-License-Identifier: GPL-2.0 */
#ifndef KVERBS_H
#define KVERBS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "abi.h"

struct iw_cm_id;

enum kv_kind { KV_QP, KV_MR, KV_CQ, KV_PD, KV_BUF, KV_KINDS }; /* in the order in which they are destroyed */

/* A device context: what belongs to one open file. */
struct kv_context {
	struct mutex lock;     /* one call at a time */
	struct list_head node; /* in the list of all contexts */
	struct ib_device *dev; /* NULL before KVERBS_OPEN and after the device has gone */
	struct xarray objects; /* struct kv_object by handle */
	struct list_head graves; /* buffers that were freed: memory stays while a device might still reach it */
	struct list_head ghosts; /* queue pairs that were destroyed: completions may still name them */
};

struct kv_object {
	enum kv_kind kind;
	u32 handle;
	unsigned int users; /* objects of this context that need this one */
};

struct kv_buf {
	struct kv_object base;
	struct list_head node; /* in graves */
	struct page *pages;
	unsigned int order;
	u64 addr;
	u64 length;
};

struct kv_pd {
	struct kv_object base;
	struct ib_pd *pd;
};

struct kv_cq {
	struct kv_object base;
	struct ib_cq *cq;
	atomic64_t events;
};

/* users counts registrations that were posted and of which nobody knows yet that the driver is done with them. */
struct kv_mr {
	struct kv_object base;
	struct ib_mr *mr;
	struct kv_pd *pd;
	unsigned int max;
};

struct kv_qp {
	struct kv_object base;
	struct ib_qp *qp;
	struct kv_pd *pd;
	struct iw_cm_id *stream; /* iWARP: its end of the connection, NULL before it has one */
	struct list_head posted; /* struct kv_posted: sends that no polled completion has retired */
};

struct kv_posted {
	struct list_head node;
	u64 wr_id;
	struct kv_mr *mr; /* of a registration, else NULL */
};

/* A destroyed queue pair: the driver's completions hold its address, which must not be followed. */
struct kv_ghost {
	struct list_head node;
	const struct ib_qp *qp;
	u32 num;
};

/* main.c */
void *kv_find(struct kv_context *ctx, u64 handle, enum kv_kind kind);
int kv_add(struct kv_context *ctx, struct kv_object *object, enum kv_kind kind);
void kv_remove(struct kv_context *ctx, struct kv_object *object);
bool kv_fits(u64 value, u64 max);

/* objects.c */
int kv_alloc_buffer(struct kv_context *ctx, struct kverbs_call *call);
int kv_free_buffer(struct kv_context *ctx, struct kverbs_call *call);
int kv_write_buffer(struct kv_context *ctx, struct kverbs_call *call);
int kv_read_buffer(struct kv_context *ctx, struct kverbs_call *call);
int kv_alloc_pd(struct kv_context *ctx, struct kverbs_call *call);
int kv_dealloc_pd(struct kv_context *ctx, struct kverbs_call *call);
int kv_create_cq(struct kv_context *ctx, struct kverbs_call *call);
int kv_destroy_cq(struct kv_context *ctx, struct kverbs_call *call);
int kv_arm_cq(struct kv_context *ctx, struct kverbs_call *call);
int kv_alloc_mr(struct kv_context *ctx, struct kverbs_call *call);
int kv_map_mr_sg(struct kv_context *ctx, struct kverbs_call *call);
int kv_update_fast_reg_key(struct kv_context *ctx, struct kverbs_call *call);
int kv_dereg_mr(struct kv_context *ctx, struct kverbs_call *call);
bool kv_is_ours(struct kv_context *ctx, u64 addr, u64 length);
int kv_drop_mr(struct kv_context *ctx, struct kv_mr *mr);
int kv_drop_cq(struct kv_context *ctx, struct kv_cq *cq);
int kv_drop_pd(struct kv_context *ctx, struct kv_pd *pd);
void kv_bury(struct kv_context *ctx, struct kv_buf *buf);
void kv_free_graves(struct kv_context *ctx);

/* qp.c */
int kv_create_qp(struct kv_context *ctx, struct kverbs_call *call);
int kv_destroy_qp(struct kv_context *ctx, struct kverbs_call *call);
int kv_modify_qp(struct kv_context *ctx, struct kverbs_call *call);
int kv_query_qp(struct kv_context *ctx, struct kverbs_call *call);
int kv_modify_qp_is_ok(struct kv_context *ctx, struct kverbs_call *call);
int kv_drop_qp(struct kv_context *ctx, struct kv_qp *qp);
void kv_free_ghosts(struct kv_context *ctx);

/* stream.c */
int kv_connect_qp(struct kv_context *ctx, struct kverbs_call *call);
void kv_drop_stream(struct kv_qp *qp);

/* work.c */
int kv_post_send(struct kv_context *ctx, struct kverbs_call *call);
int kv_post_recv(struct kv_context *ctx, struct kverbs_call *call);
int kv_poll_cq(struct kv_context *ctx, struct kverbs_call *call);
void kv_retire_all(struct kv_qp *qp);

#endif
