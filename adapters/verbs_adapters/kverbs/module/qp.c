// SPDX-License-Identifier: GPL-2.0
/* Reliable connected queue pairs, both ends on one device. */
#include <linux/etherdevice.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "kverbs.h"

static void qp_event_comes(struct ib_event *event, void *context)
{
}

static bool is_ghost(struct kv_context *ctx, const struct ib_qp *qp)
{
	struct kv_ghost *ghost;

	list_for_each_entry(ghost, &ctx->ghosts, node)
		if (ghost->qp == qp)
			return true;
	return false;
}

/*
 * A queue pair whose address no destroyed one had: a completion names its queue pair by address only, and may be
 * polled when that address is another's.  Those that do not suit are held until one does, and given back then.
 */
static struct ib_qp *create_unmistakable(struct kv_context *ctx, struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap asked = attr->cap;
	struct ib_qp *held[8];
	struct ib_qp *qp;
	int n = 0;

	for (;;) {
		attr->cap = asked;
		qp = ib_create_qp(pd, attr);
		if (IS_ERR(qp) || n == ARRAY_SIZE(held) || !is_ghost(ctx, qp))
			break;
		held[n++] = qp;
	}
	while (n)
		ib_destroy_qp(held[--n]);
	return qp;
}

int kv_create_qp(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_pd *pd = kv_find(ctx, call->in[0], KV_PD);
	struct kv_cq *send = kv_find(ctx, call->in[1], KV_CQ);
	struct kv_cq *recv = kv_find(ctx, call->in[2], KV_CQ);
	struct ib_qp_init_attr *attr;
	struct kv_qp *qp;
	int err = -ENOMEM;

	if (!pd || !send || !recv || !kv_fits(call->in[3], U32_MAX) || !kv_fits(call->in[4], U32_MAX) ||
	    !kv_fits(call->in[5], U32_MAX))
		return -EINVAL;
	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!qp || !attr)
		goto failed;
	INIT_LIST_HEAD(&qp->posted);
	attr->event_handler = qp_event_comes;
	attr->qp_context = qp;
	attr->send_cq = send->cq;
	attr->recv_cq = recv->cq;
	attr->cap.max_send_wr = call->in[3];
	attr->cap.max_recv_wr = call->in[4];
	attr->cap.max_send_sge = call->in[5];
	attr->cap.max_recv_sge = call->in[5];
	attr->sq_sig_type = IB_SIGNAL_REQ_WR;
	attr->qp_type = IB_QPT_RC;
	attr->port_num = rdma_start_port(ctx->dev);
	qp->qp = create_unmistakable(ctx, pd->pd, attr);
	if (IS_ERR(qp->qp)) {
		err = PTR_ERR(qp->qp);
		goto failed;
	}
	err = kv_add(ctx, &qp->base, KV_QP);
	if (err) {
		ib_destroy_qp(qp->qp);
		goto failed;
	}
	qp->pd = pd;
	pd->base.users++;
	call->out[0] = qp->base.handle;
	call->out[1] = qp->qp->qp_num;
	call->out[2] = attr->cap.max_send_wr;
	call->out[3] = attr->cap.max_recv_wr;
	call->out[4] = attr->cap.max_send_sge;
	call->out[5] = attr->cap.max_recv_sge;
	kfree(attr);
	return 0;
failed:
	kfree(attr);
	kfree(qp);
	return err;
}

int kv_drop_qp(struct kv_context *ctx, struct kv_qp *qp)
{
	struct kv_ghost *ghost = kzalloc(sizeof(*ghost), GFP_KERNEL);
	int err;

	if (!ghost)
		return -ENOMEM;
	ghost->qp = qp->qp;
	ghost->num = qp->qp->qp_num;
	err = ib_destroy_qp(qp->qp);
	if (err) {
		kfree(ghost);
		return err;
	}
	kv_drop_stream(qp);
	list_add(&ghost->node, &ctx->ghosts);
	kv_retire_all(qp);
	qp->pd->base.users--;
	kv_remove(ctx, &qp->base);
	return 0;
}

void kv_free_ghosts(struct kv_context *ctx)
{
	struct kv_ghost *ghost, *next;

	list_for_each_entry_safe(ghost, next, &ctx->ghosts, node) {
		list_del(&ghost->node);
		kfree(ghost);
	}
}

int kv_destroy_qp(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_qp *qp = kv_find(ctx, call->in[0], KV_QP);

	return qp ? kv_drop_qp(ctx, qp) : -EINVAL;
}

/*
 * The way from this port to itself.  For RoCE the caller of ib_modify_qp has to know the destination's Ethernet
 * address: the core resolves it for queue pairs of user space only.  An IPv4 address (a mapped one) with UDP
 * encapsulation is preferred, then any with that, then any.
 */
static int way_to_self(struct ib_device *dev, struct rdma_ah_attr *ah)
{
	u32 port = rdma_start_port(dev);
	const struct ib_gid_attr *attr;
	struct net_device *netdev;
	struct ib_port_attr state;
	int i, worth, best = 0;
	int err;

	err = ib_query_port(dev, port, &state);
	if (err)
		return err;
	ah->type = rdma_ah_find_type(dev, port);
	rdma_ah_set_port_num(ah, port);
	rdma_ah_set_dlid(ah, state.lid);
	for (i = 0; i < state.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(dev, port, i);
		if (IS_ERR(attr))
			continue;
		worth = 1 + (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP) +
			(attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			 ipv6_addr_v4mapped((const struct in6_addr *)attr->gid.raw));
		if (worth > best) {
			best = worth;
			rdma_ah_set_grh(ah, (union ib_gid *)&attr->gid, 0, i, 64, 0);
			if (ah->type == RDMA_AH_ATTR_TYPE_ROCE) {
				rcu_read_lock();
				netdev = rcu_dereference(attr->ndev);
				if (netdev)
					ether_addr_copy(ah->roce.dmac, netdev->dev_addr);
				rcu_read_unlock();
			}
		}
		rdma_put_gid_attr(attr);
	}
	return best ? 0 : -EADDRNOTAVAIL;
}

int kv_modify_qp(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_qp *qp = kv_find(ctx, call->in[0], KV_QP);
	const u64 *in = call->in;
	struct ib_qp_attr *attr;
	int i, err;

	if (!qp || !kv_fits(in[1], IB_QP_ATTR_STANDARD_BITS))
		return -EINVAL;
	for (i = KV_ATTR_STATE; i <= KV_ATTR_MIN_RNR_TIMER; i++)
		if (!kv_fits(in[i], i == KV_ATTR_DEST_QP_NUM || i == KV_ATTR_RQ_PSN || i == KV_ATTR_SQ_PSN ? 0xffffff :
													     U8_MAX))
			return -EINVAL;
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	attr->qp_state = in[KV_ATTR_STATE];
	attr->qp_access_flags = in[KV_ATTR_ACCESS];
	attr->dest_qp_num = in[KV_ATTR_DEST_QP_NUM];
	attr->path_mtu = in[KV_ATTR_PATH_MTU];
	attr->rq_psn = in[KV_ATTR_RQ_PSN];
	attr->sq_psn = in[KV_ATTR_SQ_PSN];
	attr->max_rd_atomic = in[KV_ATTR_MAX_RD_ATOMIC];
	attr->max_dest_rd_atomic = in[KV_ATTR_MAX_DEST_RD_ATOMIC];
	attr->timeout = in[KV_ATTR_TIMEOUT];
	attr->retry_cnt = in[KV_ATTR_RETRY_CNT];
	attr->rnr_retry = in[KV_ATTR_RNR_RETRY];
	attr->min_rnr_timer = in[KV_ATTR_MIN_RNR_TIMER];
	attr->port_num = rdma_start_port(ctx->dev);
	err = in[1] & IB_QP_AV ? way_to_self(ctx->dev, &attr->ah_attr) : 0;
	if (!err)
		err = ib_modify_qp(qp->qp, attr, in[1]);
	if (!err && in[1] & IB_QP_STATE && attr->qp_state == IB_QPS_RESET)
		kv_retire_all(qp);
	kfree(attr);
	return err;
}

int kv_query_qp(struct kv_context *ctx, struct kverbs_call *call)
{
	struct kv_qp *qp = kv_find(ctx, call->in[0], KV_QP);
	struct ib_qp_init_attr *init;
	struct ib_qp_attr *attr;
	int err = -ENOMEM;

	if (!qp)
		return -EINVAL;
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	init = kzalloc(sizeof(*init), GFP_KERNEL);
	if (attr && init)
		err = ib_query_qp(qp->qp, attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_RQ_PSN, init);
	if (!err) {
		call->out[0] = attr->qp_state;
		call->out[1] = attr->sq_psn;
		call->out[2] = attr->rq_psn;
	}
	kfree(init);
	kfree(attr);
	return err;
}

int kv_modify_qp_is_ok(struct kv_context *ctx, struct kverbs_call *call)
{
	if (!kv_fits(call->in[0], IB_QPS_ERR) || !kv_fits(call->in[1], IB_QPS_ERR) ||
	    !kv_fits(call->in[2], IB_QPT_XRC_TGT) || !kv_fits(call->in[3], S32_MAX))
		return -EINVAL;
	call->out[0] = ib_modify_qp_is_ok(call->in[0], call->in[1], call->in[2], call->in[3]);
	return 0;
}
