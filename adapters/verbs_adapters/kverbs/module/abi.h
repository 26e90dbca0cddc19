/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What crosses /dev/kverbs: one ioctl for all verbs, one structure of fixed size for all calls.
 *
 * An open file is a device context.  It names its device with KVERBS_OPEN, then makes calls with KVERBS_CALL;
 * closing it destroys whatever is left.  The ioctl's return value is the verb's: 0, or a negative errno, as the
 * kernel's verbs layer or the driver gave it.  Objects are named by handles from 1 on, unique in their context.
 */
#ifndef KVERBS_ABI_H
#define KVERBS_ABI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KVERBS_NAME_LEN 64
#define KVERBS_INS 20
#define KVERBS_OUTS 8
#define KVERBS_MAX_LIST 4096

struct kverbs_open {
	char name[KVERBS_NAME_LEN];
	char fw[KVERBS_NAME_LEN];
	__u64 max_qp_wr;
	__u64 max_cqe;
	__u64 max_sge;
	__u64 max_fast_reg_page_list_len;
	__u64 page_size_cap;
	__u64 device_cap_flags;
	__u64 iwarp; /* 1 if the device's first port is iWARP, 0 for RoCE or InfiniBand */
};

/* An element of a list: of a scatter list (no lkey) or of a work request. */
struct kverbs_sge {
	__u64 addr;
	__u64 length;
	__u64 lkey;
};

struct kverbs_call {
	__u32 verb;
	__u32 count; /* elements or bytes at `list` */
	__u64 list;  /* user address of struct kverbs_sge[count], or of bytes */
	__u64 in[KVERBS_INS];
	__u64 out[KVERBS_OUTS];
};

#define KVERBS_OPEN _IOWR('V', 1, struct kverbs_open)
#define KVERBS_CALL _IOWR('V', 2, struct kverbs_call)

enum kverbs_verb {
	KV_ALLOC_BUFFER = 1,    /* length -> buf, addr */
	KV_FREE_BUFFER,         /* buf */
	KV_WRITE_BUFFER,        /* buf, offset; bytes */
	KV_READ_BUFFER,         /* buf, offset; bytes */
	KV_ALLOC_PD,            /* -> pd, local_dma_lkey */
	KV_DEALLOC_PD,          /* pd */
	KV_CREATE_CQ,           /* cqe -> cq, cqe */
	KV_DESTROY_CQ,          /* cq */
	KV_POLL_CQ,             /* cq -> n, wr_id, status, opcode, qp_num, byte_len, flags, invalidate_rkey */
	KV_ARM_CQ,              /* cq, solicited only -> events so far */
	KV_CREATE_QP,           /* pd, send_cq, recv_cq, max_send_wr, max_recv_wr, max_sge -> qp, num, send, recv */
	KV_DESTROY_QP,          /* qp */
	KV_MODIFY_QP,           /* qp, mask, then enum kverbs_attr from in[2] on */
	KV_QUERY_QP,            /* qp -> state, sq_psn, rq_psn */
	KV_ALLOC_MR,            /* pd, max_num_sg -> mr, lkey, rkey */
	KV_MAP_MR_SG,           /* mr, offset, page_size; sg -> n, iova, length */
	KV_UPDATE_FAST_REG_KEY, /* mr, byte -> lkey */
	KV_DEREG_MR,            /* mr */
	KV_POST_SEND,           /* enum kverbs_wr; sges */
	KV_POST_RECV,           /* qp, wr_id; sges */
	KV_MODIFY_QP_IS_OK,     /* current state, next state, enum ib_qp_type, mask -> 1 or 0 */
	KV_CONNECT_QP,          /* iWARP: qp, qp that is called, IPv4 address of the port, reads outstanding */
	KV_VERBS,
};

/* in[] of KV_MODIFY_QP; the address vector and the port are this module's to fill in. */
enum kverbs_attr {
	KV_ATTR_STATE = 2,
	KV_ATTR_ACCESS,
	KV_ATTR_DEST_QP_NUM,
	KV_ATTR_PATH_MTU,
	KV_ATTR_RQ_PSN,
	KV_ATTR_SQ_PSN,
	KV_ATTR_MAX_RD_ATOMIC,
	KV_ATTR_MAX_DEST_RD_ATOMIC,
	KV_ATTR_TIMEOUT,
	KV_ATTR_RETRY_CNT,
	KV_ATTR_RNR_RETRY,
	KV_ATTR_MIN_RNR_TIMER,
};

/* in[] of KV_POST_SEND. */
enum kverbs_wr {
	KV_WR_QP = 0,
	KV_WR_ID,
	KV_WR_OPCODE, /* enum kverbs_opcode */
	KV_WR_SIGNALED,
	KV_WR_FENCE,
	KV_WR_REMOTE_ADDR,
	KV_WR_RKEY,
	KV_WR_INVALIDATE_RKEY,
	KV_WR_MR,
	KV_WR_KEY,
	KV_WR_ACCESS,
};

/* Opcodes of work requests and of completions; the kernel's own numbers are not the same in all releases. */
enum kverbs_opcode {
	KV_OP_OTHER = 0,
	KV_OP_SEND,
	KV_OP_RDMA_WRITE,
	KV_OP_RDMA_READ,
	KV_OP_LOCAL_INV,
	KV_OP_REG_MR,
	KV_OP_SEND_WITH_INV,
	KV_OP_RECV,
};

#endif
