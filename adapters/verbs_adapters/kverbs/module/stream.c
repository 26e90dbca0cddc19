// SPDX-License-Identifier: GPL-2.0
/*
 * iWARP: the stream that connects two queue pairs.
 *
 * Theory of operation
 * -------------------
 * A queue pair of iWARP gets to RTS with a TCP stream and not by ib_modify_qp: somebody listens, somebody connects, the
 * listener accepts, and the driver moves each queue pair when its side of the handshake is done.  Here both sides are
 * of one context, so one call does it all, by the kernel's iWARP connection manager (iw_cm), and comes back when both
 * ends are in RTS or the attempt has failed.
 *
 * Each end has an identifier of the connection manager (struct iw_cm_id), which belongs to its queue pair and goes after
 * it, as a consumer's does.  Events come on a work queue of the manager's, possibly while an identifier is destroyed.
 * So an identifier's context is no pointer but a number, under which only an attempt that is being made can be found.
 *
 * A queue pair that had a stream is refused another one: drivers do not look, and lose what belongs to the first.
 */
#include <linux/completion.h>
#include <linux/in.h>
#include <linux/slab.h>
#include <rdma/iw_cm.h>

#include "kverbs.h"

#define FIRST_PORT 20000
#define PORTS 10000
#define PORTS_TRIED 64
#define BACKLOG 4
#define PATIENCE (15 * HZ) /* longer than the driver's own for a peer that does not answer */

/* Sides of a handshake that have something to tell. */
enum side { ASKED, REPLIED, ACCEPTED, SIDES };

struct attempt {
	u32 number;
	struct iw_cm_id *passive;
	struct completion news[SIDES];
	int status[SIDES];
};

static DEFINE_XARRAY_ALLOC1(attempts);
static DEFINE_MUTEX(attempts_lock);
static atomic_t next_port;

static void tell(struct attempt *attempt, enum side side, int status)
{
	attempt->status[side] = status;
	complete(&attempt->news[side]);
}

/* An event of the connection manager; what it answers to a request that nobody waits for has that refused. */
static int event_comes(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct attempt *attempt;
	int err = 0;

	mutex_lock(&attempts_lock);
	attempt = xa_load(&attempts, (unsigned long)id->context);
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		if (!attempt || attempt->passive) {
			err = -ECONNREFUSED;
			break;
		}
		attempt->passive = id;
		tell(attempt, ASKED, event->status);
		break;
	case IW_CM_EVENT_CONNECT_REPLY:
		if (attempt)
			tell(attempt, REPLIED, event->status);
		break;
	case IW_CM_EVENT_ESTABLISHED:
		if (attempt)
			tell(attempt, ACCEPTED, event->status);
		break;
	default: /* the end of a stream shows in the queue pair */
		break;
	}
	mutex_unlock(&attempts_lock);
	return err;
}

static int hear(struct attempt *attempt, enum side side)
{
	if (!wait_for_completion_timeout(&attempt->news[side], PATIENCE))
		return -ETIMEDOUT;
	return attempt->status[side];
}

static struct iw_cm_id *identify(struct kv_context *ctx, struct attempt *attempt)
{
	return iw_create_cm_id(ctx->dev, event_comes, (void *)(unsigned long)attempt->number);
}

static void set_address(struct sockaddr_storage *to, u32 addr, u16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(addr);
	in->sin_port = htons(port);
}

/* Somebody who listens at a port that is free; the port goes to *port. */
static struct iw_cm_id *listen(struct kv_context *ctx, struct attempt *attempt, u32 addr, u16 *port)
{
	struct iw_cm_id *id;
	int tries, err;

	for (tries = 0; tries < PORTS_TRIED; tries++) {
		id = identify(ctx, attempt);
		if (IS_ERR(id))
			return id;
		*port = FIRST_PORT + (u32)atomic_inc_return(&next_port) % PORTS;
		set_address(&id->local_addr, addr, *port);
		err = iw_cm_listen(id, BACKLOG);
		if (!err)
			return id;
		iw_destroy_cm_id(id);
		if (err != -EADDRINUSE)
			return ERR_PTR(err);
	}
	return ERR_PTR(-EADDRINUSE);
}

/* The handshake; both ends are in RTS if it returns 0. */
static int shake_hands(struct attempt *attempt, struct iw_cm_id *active, struct kv_qp *caller, struct kv_qp *called,
		       u32 reads)
{
	struct iw_cm_conn_param param = { .ord = reads, .ird = reads };
	int err;

	param.qpn = caller->qp->qp_num;
	err = iw_cm_connect(active, &param);
	if (err)
		return err;
	err = hear(attempt, ASKED);
	if (err)
		return err;
	param.qpn = called->qp->qp_num;
	err = iw_cm_accept(attempt->passive, &param);
	if (err)
		return err;
	err = hear(attempt, REPLIED);
	return err ? err : hear(attempt, ACCEPTED);
}

static struct attempt *begin(void)
{
	struct attempt *attempt = kzalloc(sizeof(*attempt), GFP_KERNEL);
	int side, err;

	if (!attempt)
		return ERR_PTR(-ENOMEM);
	for (side = 0; side < SIDES; side++)
		init_completion(&attempt->news[side]);
	mutex_lock(&attempts_lock);
	err = xa_alloc(&attempts, &attempt->number, attempt, xa_limit_31b, GFP_KERNEL);
	mutex_unlock(&attempts_lock);
	if (!err)
		return attempt;
	kfree(attempt);
	return ERR_PTR(err);
}

/* After this no event finds the attempt. */
static void end(struct attempt *attempt)
{
	mutex_lock(&attempts_lock);
	xa_erase(&attempts, attempt->number);
	mutex_unlock(&attempts_lock);
	kfree(attempt);
}

int kv_connect_qp(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_qp *caller = kv_find(ctx, call->in[0], KV_QP);
	struct kv_qp *called = kv_find(ctx, call->in[1], KV_QP);
	struct iw_cm_id *listener, *active, *passive;
	struct attempt *attempt;
	u16 port;
	int err;

	if (!caller || !called || caller == called || !kv_fits(call->in[2], U32_MAX) || !kv_fits(call->in[3], U8_MAX))
		return -EINVAL;
	if (!rdma_cap_iw_cm(ctx->dev, rdma_start_port(ctx->dev)))
		return -EOPNOTSUPP;
	if (caller->stream || called->stream)
		return -EISCONN;
	attempt = begin();
	if (IS_ERR(attempt))
		return PTR_ERR(attempt);
	listener = listen(ctx, attempt, call->in[2], &port);
	if (IS_ERR(listener)) {
		end(attempt);
		return PTR_ERR(listener);
	}
	active = identify(ctx, attempt);
	if (IS_ERR(active)) {
		err = PTR_ERR(active);
		goto no_caller;
	}
	set_address(&active->local_addr, call->in[2], 0);
	set_address(&active->remote_addr, call->in[2], port);
	err = shake_hands(attempt, active, caller, called, call->in[3]);
	mutex_lock(&attempts_lock);
	passive = attempt->passive;
	attempt->passive = passive ?: active; /* whoever else asks now is refused */
	mutex_unlock(&attempts_lock);
	if (!err) {
		caller->stream = active;
		called->stream = passive;
	} else {
		iw_destroy_cm_id(active);
		if (passive)
			iw_destroy_cm_id(passive);
	}
no_caller:
	iw_destroy_cm_id(listener);
	end(attempt);
	return err;
}

/* Forget the stream of a queue pair that is no more. */
void kv_drop_stream(struct kv_qp *qp)
{
	if (qp->stream)
		iw_destroy_cm_id(qp->stream);
	qp->stream = NULL;
}
