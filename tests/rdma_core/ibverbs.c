/* A libibverbs.so.1 with one device that exists only here: enough for the agent's own machinery to be tested.
 *
 * It does no RDMA. Messages between its queue pairs complete at once and carry no data; atomics are done in place,
 * a datagram is delivered if address handle, number and Q_Key are right. A few arguments make it misbehave:
 * create_cq(cqe=13) never returns, create_cq(cqe=14) crashes, create_cq(cqe=15) and resize_cq to 15 fail with ENOSPC,
 * modify_qp to SQD pushes an asynchronous event. FAKE_DEVICES=N in the environment gives so many devices.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

struct pair {
	struct ibv_qp qp;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct pair *peer;
	uint64_t recv[64];
	int recvs;
};
struct queue { struct ibv_cq cq; struct ibv_wc wc[256]; int first, last, armed; };
struct shared { struct ibv_srq srq; struct ibv_srq_attr attr; uint64_t recv[64]; unsigned int recvs; };
struct channel { struct ibv_comp_channel channel; int sink; };

static struct pair *pairs[1 << 12];
static int users, event_pipe[2], unacknowledged;

static void tell(struct ibv_async_event event)
{
	if (write(event_pipe[1], &event, sizeof event) != sizeof event)
		abort();
}

/* One for any completion, two for a solicited one. */
static void wake(struct queue *q, int solicited)
{
	if (!q->armed || (q->armed == 2 && !solicited) || !q->cq.channel)
		return;
	q->armed = 0;
	if (write(((struct channel *)q->cq.channel)->sink, &q, sizeof q) != sizeof q)
		abort();
}

static struct ibv_wc *complete(struct ibv_cq *cq, uint64_t wr_id, int opcode, uint32_t qp_num, int solicited)
{
	struct queue *q = (struct queue *)cq;
	struct ibv_wc *wc = &q->wc[q->last++ % 256];

	memset(wc, 0, sizeof *wc);
	wc->wr_id = wr_id;
	wc->opcode = opcode;
	wc->qp_num = qp_num;
	wake(q, solicited);
	return wc;
}

/* The receive that a message takes, from the queue pair's own queue or from its shared one. */
static int take_receive(struct pair *p, uint64_t *wr_id)
{
	struct shared *s = (struct shared *)p->qp.srq;

	if (!s) {
		if (!p->recvs)
			return 0;
		*wr_id = p->recv[--p->recvs];
		return 1;
	}
	if (!s->recvs)
		return 0;
	*wr_id = s->recv[--s->recvs];
	if (s->recvs < s->attr.srq_limit) {
		struct ibv_async_event event = { .element.srq = &s->srq, .event_type = IBV_EVENT_SRQ_LIMIT_REACHED };

		s->attr.srq_limit = 0;
		tell(event);
	}
	return 1;
}

static void deliver(struct pair *from, struct pair *to, struct ibv_send_wr *wr)
{
	int with_imm = wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc *wc;
	uint64_t wr_id;

	if (!to || (wr->opcode == IBV_WR_RDMA_WRITE) || !take_receive(to, &wr_id))
		return;
	wc = complete(to->qp.recv_cq, wr_id,
		      wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, to->qp.qp_num,
		      wr->send_flags & IBV_SEND_SOLICITED);
	wc->wc_flags = IBV_WC_GRH;
	wc->src_qp = from->qp.qp_num;
	wc->sl = 3;
	if (with_imm) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_data = wr->imm_data;
	}
	for (int i = 0; i < wr->num_sge; i++)
		wc->byte_len += wr->sg_list[i].length;
}

static int atomic(struct ibv_send_wr *wr)
{
	uint64_t *there = (uint64_t *)(uintptr_t)wr->wr.atomic.remote_addr;
	uint64_t old = *there;

	if (wr->num_sge != 1 || wr->sg_list[0].length != 8 || wr->wr.atomic.rkey != 0x77)
		return EINVAL;
	if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*there += wr->wr.atomic.compare_add;
	else if (old == wr->wr.atomic.compare_add)
		*there = wr->wr.atomic.swap;
	*(uint64_t *)(uintptr_t)wr->sg_list[0].addr = old;
	return 0;
}

static int bind(struct ibv_mw *mw, uint32_t rkey, struct ibv_mw_bind_info *info)
{
	if (!info->mr || info->length != 64 || info->mw_access_flags != IBV_ACCESS_REMOTE_READ ||
	    info->addr != (uintptr_t)info->mr->addr + 16)
		return EINVAL;
	mw->rkey = rkey;
	return 0;
}

static int poll_one(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct queue *q = (struct queue *)cq;

	if (n < 1 || q->first == q->last)
		return 0;
	*wc = q->wc[q->first++ % 256];
	return 1;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct pair *p = (struct pair *)qp, *to = p->peer;
	int failed = 0, opcode = IBV_WC_SEND;

	if (qp->state != IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
	if (wr->send_flags & IBV_SEND_INLINE && wr->num_sge && wr->sg_list[0].length > 64) {
		*bad = wr;
		return ENOMEM;
	}
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		opcode = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD;
		failed = atomic(wr);
		break;
	case IBV_WR_BIND_MW:
		opcode = IBV_WC_BIND_MW;
		failed = bind(wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		break;
	default:
		if (qp->qp_type == IBV_QPT_UD)
			to = wr->wr.ud.ah && wr->wr.ud.remote_qpn < 1 << 12 ? pairs[wr->wr.ud.remote_qpn] : NULL;
		if (qp->qp_type == IBV_QPT_UD && to && to->attr.qkey != wr->wr.ud.remote_qkey)
			to = NULL;
		/* In network byte order, the numbers of these tests begin with 1. */
		if ((wr->opcode == IBV_WR_SEND_WITH_IMM) && *(unsigned char *)&wr->imm_data != 1)
			failed = EPROTO;
		else
			deliver(p, to, wr);
	}
	if (failed) {
		*bad = wr;
		return failed;
	}
	if (wr->send_flags & IBV_SEND_SIGNALED || p->init.sq_sig_all)
		complete(qp->send_cq, wr->wr_id, opcode, qp->qp_num, 0);
	return wr->next ? post_send(qp, wr->next, bad) : 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *p = (struct pair *)qp;

	p->recv[p->recvs++] = wr->wr_id;
	return wr->next ? post_recv(qp, wr->next, bad) : 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct shared *s = (struct shared *)srq;

	if (s->recvs >= s->attr.max_wr) {
		*bad = wr;
		return ENOMEM;
	}
	s->recv[s->recvs++] = wr->wr_id;
	return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	((struct queue *)cq)->armed = solicited_only ? 2 : 1;
	return 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_mw *made;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
		errno = EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->context = pd->context;
	made->pd = pd;
	made->type = type;
	made->rkey = 0x500;
	return made;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *wanted)
{
	int failed = bind(mw, mw->rkey + 1, &wanted->bind_info);

	if (!failed && wanted->send_flags & IBV_SEND_SIGNALED)
		complete(qp->send_cq, wanted->wr_id, IBV_WC_BIND_MW, qp->qp_num, 0);
	return failed;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	free(mw);
	return 0;
}

API struct ibv_device **ibv_get_device_list(int *count)
{
	static struct ibv_device devices[8], *list[9];
	const char *wanted = getenv("FAKE_DEVICES");

	*count = wanted ? atoi(wanted) : 1;
	for (int i = 0; i < *count; i++) {
		snprintf(devices[i].name, sizeof devices[i].name, "fake%d", i);
		devices[i].transport_type = IBV_TRANSPORT_IB;
		list[i] = &devices[i];
	}
	return list;
}

API void ibv_free_device_list(struct ibv_device **list) { (void)list; }
API const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }

API struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *made = calloc(1, sizeof *made);

	if (pipe(event_pipe))
		return NULL;
	made->device = device;
	made->async_fd = event_pipe[0];
	made->ops.poll_cq = poll_one;
	made->ops.post_send = post_send;
	made->ops.post_recv = post_recv;
	made->ops.post_srq_recv = post_srq_recv;
	made->ops.req_notify_cq = req_notify_cq;
	made->ops.alloc_mw = alloc_mw;
	made->ops.bind_mw = bind_mw;
	made->ops.dealloc_mw = dealloc_mw;
	return made;
}

#undef ibv_query_port
API int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	(void)context;
	memset(attr, 0, sizeof *attr);
	strcpy(attr->fw_ver, "1.2.3");
	attr->phys_port_cnt = 1;
	attr->max_qp_wr = 64;
	attr->max_cqe = 255;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 4;
	attr->max_mr_size = UINT64_MAX;
	attr->max_srq = 8;
	attr->atomic_cap = IBV_ATOMIC_HCA;
	attr->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_PORT_ACTIVE_EVENT;
	return 0;
}

API int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (void *)compat;

	(void)context;
	if (port != 1)
		return EINVAL;
	attr->state = IBV_PORT_ACTIVE;
	attr->max_mtu = IBV_MTU_4096;
	attr->active_mtu = IBV_MTU_1024;
	attr->gid_tbl_len = 2;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

/* The last byte of the device's address: 1 for fake0. What is sent to another one gets lost. */
static int host_of(struct ibv_device *device) { return device->name[4] - '0' + 1; }

API int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)port;
	memset(gid, 0, sizeof *gid);
	if (index == 1) {
		memcpy(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0", 15);
		gid->raw[15] = host_of(context->device);
	}
	return 0;
}

API struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *made = calloc(1, sizeof *made);

	made->context = context;
	return made;
}

API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (pd->handle)
		return EBUSY;
	free(pd);
	return 0;
}

#undef ibv_reg_mr
API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *made;

	if (!length || (access & IBV_ACCESS_REMOTE_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE))) {
		errno = EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->context = pd->context;
	made->pd = pd;
	made->addr = addr;
	made->lkey = 0x100 + ++users;
	made->rkey = 0x80000000u + users;
	pd->handle++;
	return made;
}

API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (!flags || (flags & IBV_REREG_MR_CHANGE_PD && !pd)) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (addr == mr->addr || length != 7)) {
		errno = EPROTO;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->rkey += access;
	return 0;
}

API int ibv_dereg_mr(struct ibv_mr *mr)
{
	mr->pd->handle--;
	free(mr);
	return 0;
}

API struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *own, struct ibv_comp_channel *channel,
				 int vector)
{
	struct queue *made;

	(void)own;
	if (cqe == 13)
		for (;;)
			pause();
	if (cqe == 14)
		abort();
	if (cqe == 15 || cqe < 1) {
		errno = cqe == 15 ? ENOSPC : EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->cq.context = context;
	made->cq.cqe = cqe | 1;
	made->cq.channel = channel;
	if (vector) {
		errno = EINVAL;
		return NULL;
	}
	if (channel)
		channel->refcnt++;
	return &made->cq;
}

API int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (cqe == 15)
		return ENOSPC;
	cq->cqe = cqe | 1;
	return 0;
}

API int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (cq->comp_events_completed != cq->async_events_completed)
		abort(); /* the real one waits */
	if (cq->channel)
		cq->channel->refcnt--;
	free(cq);
	return 0;
}

API struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct channel *made = calloc(1, sizeof *made);
	int ends[2];

	if (pipe(ends))
		return NULL;
	made->channel.context = context;
	made->channel.fd = ends[0];
	made->sink = ends[1];
	return &made->channel;
}

API int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (channel->refcnt)
		return EBUSY;
	free(channel);
	return 0;
}

/* How many events were taken is kept in a member that has no use here. */
API int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context)
{
	if (read(channel->fd, cq, sizeof *cq) != sizeof *cq)
		return -1;
	*context = NULL;
	(*cq)->async_events_completed++;
	return 0;
}

API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents) { cq->comp_events_completed += nevents; }

API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct shared *made;

	if (init->attr.max_wr > 64) {
		errno = EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->srq.context = pd->context;
	init->attr.max_wr |= 3;
	made->attr = init->attr;
	return &made->srq;
}

API int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct shared *s = (struct shared *)srq;

	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > s->attr.max_wr)
		return EINVAL;
	if (mask & IBV_SRQ_LIMIT)
		s->attr.srq_limit = attr->srq_limit;
	if (mask & IBV_SRQ_MAX_WR)
		s->attr.max_wr = attr->max_wr;
	return 0;
}

API int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	*attr = ((struct shared *)srq)->attr;
	return 0;
}

API int ibv_destroy_srq(struct ibv_srq *srq)
{
	if (unacknowledged)
		abort(); /* the real one waits */
	free(srq);
	return 0;
}

API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct ibv_ah *made;

	if (attr->port_num != 1 || !attr->is_global || attr->grh.sgid_index != 1 || attr->grh.dgid.raw[15] != 1) {
		errno = EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->context = pd->context;
	return made;
}

API int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct pair *made;

	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	made = calloc(1, sizeof *made);
	made->qp.context = pd->context;
	made->qp.qp_type = init->qp_type;
	made->qp.srq = init->srq;
	made->qp.send_cq = init->send_cq;
	made->qp.recv_cq = init->recv_cq;
	made->qp.qp_num = 0x11 + users++;
	init->cap.max_send_wr |= 3;
	init->cap.max_inline_data |= 15;
	made->init = *init;
	pairs[made->qp.qp_num] = made;
	return &made->qp;
}

API int ibv_destroy_qp(struct ibv_qp *qp)
{
	pairs[qp->qp_num] = NULL;
	free(qp);
	return 0;
}

static void keep(struct pair *p, struct ibv_qp_attr *attr, int mask)
{
	int qkey = p->attr.qkey;

	p->attr = *attr;
	if (!(mask & IBV_QP_QKEY))
		p->attr.qkey = qkey;
}

API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	static const int required[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_MAX_QP_RD_ATOMIC,
	};

	static const int required_of_datagrams[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		[IBV_QPS_RTR] = 0,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN,
	};
	const int *wanted = qp->qp_type == IBV_QPT_UD ? required_of_datagrams : required;

	if (attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (attr->qp_state <= IBV_QPS_RTS && attr->qp_state > IBV_QPS_RESET &&
	    (qp->state + 1 != attr->qp_state || mask != (wanted[attr->qp_state] | IBV_QP_STATE)))
		return EINVAL;
	keep((struct pair *)qp, attr, mask);
	if (attr->qp_state == IBV_QPS_RTR && qp->qp_type == IBV_QPT_RC) {
		if (attr->path_mtu != IBV_MTU_1024 || attr->ah_attr.grh.sgid_index != 1 || !attr->ah_attr.is_global ||
		    attr->ah_attr.grh.dgid.raw[12] != 10 || attr->max_dest_rd_atomic != 4)
			return EPROTO;
		if (attr->ah_attr.grh.dgid.raw[15] == host_of(qp->context->device))
			((struct pair *)qp)->peer = pairs[attr->dest_qp_num];
	}
	if (attr->qp_state == IBV_QPS_SQD) {
		struct ibv_async_event event = { .element.qp = qp, .event_type = IBV_EVENT_SQ_DRAINED };

		tell(event);
	}
	qp->state = attr->qp_state;
	return 0;
}

API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	(void)mask;
	*init = ((struct pair *)qp)->init;
	*attr = ((struct pair *)qp)->attr;
	attr->qp_state = qp->state;
	return 0;
}

API int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	if (read(context->async_fd, event, sizeof *event) != sizeof *event)
		return -1;
	unacknowledged++;
	return 0;
}

API void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
	unacknowledged--;
}
