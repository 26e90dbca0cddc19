/* A libibverbs.so.1 with one device that exists only here: enough for the agent's own machinery to be tested.
 *
 * It does no RDMA. Messages between its queue pairs complete at once. A few arguments make it misbehave:
 * create_cq(cqe=13) never returns, create_cq(cqe=14) crashes, create_cq(cqe=15) fails with ENOSPC,
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

struct pair { struct ibv_qp qp; struct pair *peer; uint64_t recv[64]; int recvs; };
struct queue { struct ibv_cq cq; struct ibv_wc wc[256]; int first, last; };

static struct pair *pairs[1 << 12];
static int users, event_pipe[2];
static struct ibv_async_event pending;

static void complete(struct ibv_cq *cq, uint64_t wr_id, int opcode, uint32_t qp_num)
{
	struct queue *q = (struct queue *)cq;
	struct ibv_wc *wc = &q->wc[q->last++ % 256];

	memset(wc, 0, sizeof *wc);
	wc->wr_id = wr_id;
	wc->opcode = opcode;
	wc->qp_num = qp_num;
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
	struct pair *p = (struct pair *)qp;

	if (qp->state != IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
	if (p->peer && p->peer->recvs)
		complete(p->peer->qp.recv_cq, p->peer->recv[--p->peer->recvs], IBV_WC_RECV, p->peer->qp.qp_num);
	if (wr->send_flags & IBV_SEND_SIGNALED)
		complete(qp->send_cq, wr->wr_id, IBV_WC_SEND, qp->qp_num);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct pair *p = (struct pair *)qp;

	(void)bad;
	p->recv[p->recvs++] = wr->wr_id;
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
	return 0;
}

API int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat)
{
	struct ibv_port_attr *attr = (void *)compat;

	(void)context;
	(void)port;
	attr->state = IBV_PORT_ACTIVE;
	attr->active_mtu = IBV_MTU_1024;
	attr->gid_tbl_len = 2;
	attr->link_layer = IBV_LINK_LAYER_ETHERNET;
	return 0;
}

API int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	(void)context;
	(void)port;
	memset(gid, 0, sizeof *gid);
	if (index == 1)
		memcpy(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\1", 16);
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
	made->pd = pd;
	made->addr = addr;
	made->lkey = 0x100 + ++users;
	made->rkey = 0x80000000u + users;
	pd->handle++;
	return made;
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
	(void)channel;
	(void)vector;
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
	return &made->cq;
}

API int ibv_destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	return 0;
}

API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct pair *made = calloc(1, sizeof *made);

	made->qp.context = pd->context;
	made->qp.send_cq = init->send_cq;
	made->qp.recv_cq = init->recv_cq;
	made->qp.qp_num = 0x11 + users++;
	init->cap.max_send_wr |= 3;
	pairs[made->qp.qp_num] = made;
	return &made->qp;
}

API int ibv_destroy_qp(struct ibv_qp *qp)
{
	pairs[qp->qp_num] = NULL;
	free(qp);
	return 0;
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

	if (attr->qp_state > IBV_QPS_ERR)
		return EINVAL;
	if (attr->qp_state <= IBV_QPS_RTS && attr->qp_state > IBV_QPS_RESET &&
	    (qp->state + 1 != attr->qp_state || mask != (required[attr->qp_state] | IBV_QP_STATE)))
		return EINVAL;
	if (attr->qp_state == IBV_QPS_RTR) {
		if (attr->path_mtu != IBV_MTU_1024 || attr->ah_attr.grh.sgid_index != 1 || !attr->ah_attr.is_global ||
		    attr->ah_attr.grh.dgid.raw[15] != 1 || attr->max_dest_rd_atomic != 4)
			return EPROTO;
		((struct pair *)qp)->peer = pairs[attr->dest_qp_num];
	}
	if (attr->qp_state == IBV_QPS_SQD) {
		pending.element.qp = qp;
		pending.event_type = IBV_EVENT_SQ_DRAINED;
		if (write(event_pipe[1], "e", 1) != 1)
			return errno;
	}
	qp->state = attr->qp_state;
	return 0;
}

API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	(void)mask;
	(void)init;
	attr->qp_state = qp->state;
	return 0;
}

API int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	char byte;

	*event = pending;
	return read(context->async_fd, &byte, 1) == 1 ? 0 : -1;
}

API void ibv_ack_async_event(struct ibv_async_event *event) { (void)event; }
