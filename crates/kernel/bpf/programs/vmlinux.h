/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The kernel types that Tarsier's programs read, written by hand: they have only
 * the members that are used, which CO-RE relocates when a program is loaded. The
 * object is thus the same on whatever host it is built.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum {
	false = 0,
	true = 1
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_RB_NO_WAKEUP (1ULL << 0)
#define BPF_RB_FORCE_WAKEUP (1ULL << 1)
#define BPF_RB_AVAIL_DATA 0
#define BPF_RB_RING_SIZE 1
#define BPF_RB_CONS_POS 2
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ULL << 0)

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef struct {
	__u32 val;
} kuid_t;
typedef struct {
	__u32 val;
} kgid_t;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long bx, bp, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
};
struct thread_info {
	__u32 status; /* TS_COMPAT: entered through a 32-bit gate */
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
struct pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
	__u64 orig_x0;
	__s32 syscallno;
};
struct thread_info {
	unsigned long flags; /* TIF_32BIT */
};
#endif

struct qstr {
	__u32 hash;
	__u32 len;
	const unsigned char *name;
};
struct hlist_node {
	struct hlist_node *next;
};
struct hlist_head {
	struct hlist_node *first;
};
struct hlist_bl_node {
	struct hlist_bl_node *next;
	struct hlist_bl_node **pprev;
};
struct list_head {
	struct list_head *next;
};
struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	struct dentry *s_root;
	void *s_fs_info;
	struct list_head s_mounts;
};
struct inode {
	unsigned short i_mode;
	kuid_t i_uid;
	kgid_t i_gid;
	void *i_security;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_rdev;
	long long i_size;
	struct hlist_head i_dentry;
	char *i_link;
	void *i_private;
};
union shortname_store {
	unsigned char string[40];
};
union dentry_links {
	struct hlist_node d_alias;
};
/* Older kernels have macros instead. */
enum dentry_flags {
	DCACHE_OP_HASH = 1 << 0,
	DCACHE_MOUNTED = 1 << 15,
};
struct seqcount {
	unsigned int sequence;
};
struct seqcount_spinlock {
	struct seqcount seqcount;
};
struct dentry {
	unsigned int d_flags;
	struct seqcount_spinlock d_seq;
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union shortname_store d_shortname;
	struct super_block *d_sb;
	struct hlist_node d_sib;
	struct hlist_head d_children;
	union dentry_links d_u;
};
/* Before 6.8, the entries of a directory are in a list of another kind. */
struct dentry___rings {
	struct list_head d_child;
	struct list_head d_subdirs;
};
/* Since 7.1, the list of aliases is in a union without a name. */
struct dentry___alias {
	struct hlist_node d_alias;
};
/* For kernels in which the short name is not d_shortname yet. */
struct dentry___iname {
	unsigned char d_iname[32];
};
struct vfsmount {
	struct dentry *mnt_root;
};
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct list_head mnt_mounts;
	struct list_head mnt_child;
	struct list_head mnt_instance;
};
/* Since 6.18, the mounts of a file system are not in a list_head. */
struct super_block___mounts {
	struct mount *s_mounts;
};
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};
struct callback_head {
	struct callback_head *next;
};
/* Before 6.5, f_task_work has another name. */
struct file___rcuhead {
	struct callback_head f_rcuhead;
};
struct vm_area_struct {
	struct file *vm_file;
};
struct file {
	const struct cred *f_cred;
	struct callback_head f_task_work;
	struct path f_path;
	struct inode *f_inode;
	__u32 f_mode;
	unsigned int f_flags;
	void *private_data;
};
/* The number of references: before 6.13, and since then, where it is one less. */
typedef struct {
	long counter;
} atomic64_t;
struct file___counted {
	atomic64_t f_count;
};
typedef struct {
	atomic64_t refcnt;
} file_ref_t;
struct file___ref {
	file_ref_t f_ref;
};
/* The file of a layer that is mapped for one of overlayfs. */
struct backing_file {
	struct file file;
	struct path user_path;
};
/* In 6.6 and 6.7, f_path is the user's path. */
struct backing_file___real {
	struct path real_path;
};
struct module {
	char name[56]; /* MODULE_NAME_LEN */
};
struct fs_context {
	const char *source;
};
struct bpf_prog {
	struct bpf_prog_aux *aux;
};
struct bpf_prog_aux {
	__u32 id;
	struct bpf_prog *prog;
};
struct sock_common {
	unsigned short skc_family;
};
struct sock {
	struct sock_common __sk_common;
};
struct socket {
	struct sock *sk;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *open_fds;
};
typedef struct {
	int counter;
} atomic_t;
struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
	unsigned int next_fd;
};
struct fs_struct {
	struct path root;
	struct path pwd;
};
struct group_info {
	int ngroups;
	kgid_t gid[0];
};
typedef struct {
	__u64 val; /* two __u32 before 6.3: the same eight bytes */
} kernel_cap_t;
struct ns_common {
	unsigned int inum;
};
struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
	struct ns_common ns;
};
struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	kuid_t fsuid;
	kgid_t fsgid;
	kernel_cap_t cap_inheritable;
	kernel_cap_t cap_permitted;
	kernel_cap_t cap_effective;
	kernel_cap_t cap_ambient;
	void *security;
	struct user_namespace *user_ns;
	struct group_info *group_info;
};
struct mm_struct {
	atomic_t mm_users;
	struct file *exe_file;
	unsigned long arg_start, arg_end;
};
struct tty_struct {
	char name[64];
};
struct signal_struct {
	atomic_t live;
	unsigned int flags;
	unsigned long long sum_sched_runtime;
	struct tty_struct *tty;
};
struct mnt_namespace {
	struct ns_common ns;
};
struct xa_node {
	unsigned char shift;
	void *slots[64];
};
struct xarray {
	void *xa_head;
};
struct idr {
	struct xarray idr_rt;
};
struct kern_ipc_perm {
	kuid_t uid;
	kgid_t gid;
	unsigned short mode;
	int id;
};
struct ipc_ids {
	struct idr ipcs_idr;
};
struct ipc_namespace {
	struct ipc_ids ids[3];
};
struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct ipc_namespace *ipc_ns;
};
struct kernfs_iattrs {
	kuid_t ia_uid;
};
struct kernfs_node {
	const char *name;
	__u64 id;
	unsigned short mode;
	struct kernfs_iattrs *iattr;
};
struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct cgroup_root {
	int hierarchy_id;
};
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct pid_namespace {
	struct idr idr;
	unsigned int level;
};
struct proc_fs_info {
	struct pid_namespace *pid_ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct hlist_head tasks[1];
	struct upid numbers[1];
};
/* An inode of /proc/PID. */
struct proc_inode {
	struct pid *pid;
	struct inode vfs_inode;
};
struct task_struct {
	struct thread_info thread_info;
	struct pid *thread_pid;
	struct hlist_node pid_links[4];
	unsigned int flags;
	unsigned int personality;
	int pid;
	int tgid;
	int exit_code;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	__u64 self_exec_id;
	kuid_t loginuid;
	unsigned int sessionid;
	const struct cred *real_cred;
	const struct cred *cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	struct css_set *cgroups;
	struct mm_struct *mm;
	struct callback_head *task_works;
};
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct filename {
	const char *name;
};
/* Since 7.0, io_uring operations have their names in this struct. */
struct delayed_filename {
	struct filename *__incomplete_filename;
};
struct open_flags {
	int open_flag;
};
struct renamedata {
	struct dentry *old_dentry;
	struct dentry *new_dentry;
};
struct ipc64_perm {
	__u32 uid;
	__u32 gid;
	unsigned short mode;
};
struct linux_binprm {
	struct file *file;
	const char *filename;
	const char *interp;
	const char *fdpath;
	int execfd;
	int argc;
};

/* io_uring: a request, and the data of each operation, which is at the start of the request. */
struct io_cqe {
	__u64 user_data;
	__s32 res;
	int fd;
};
struct io_ring_ctx;
struct io_kiocb {
	struct file *file;
	__u8 opcode;
	__u64 flags; /* 32 bits in some kernels */
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	const struct cred *creds;
	void *async_data;
};
struct io_uring_cqe {
	__u64 user_data;
	__s32 res;
	__u32 flags;
};
struct open_how {
	__u64 flags, mode, resolve;
};
struct io_open {
	int dfd;
	struct filename *filename;
	__u32 file_slot;
	struct open_how how;
};
struct io_close {
	int fd;
};
struct io_unlink {
	int dfd;
	int flags;
	struct filename *filename;
};
struct io_mkdir {
	int dfd;
	unsigned short mode;
	struct filename *filename;
};
struct io_rename {
	int old_dfd, new_dfd;
	struct filename *oldpath, *newpath;
	int flags;
};
struct io_link {
	int old_dfd, new_dfd;
	struct filename *oldpath, *newpath;
	int flags;
};
struct io_xattr {
	struct filename *filename;
};
struct io_statx {
	int dfd;
	unsigned int flags;
	struct filename *filename;
};
struct io_open___delayed {
	struct delayed_filename filename;
};
struct io_unlink___delayed {
	struct delayed_filename filename;
};
struct io_mkdir___delayed {
	struct delayed_filename filename;
};
struct io_rename___delayed {
	struct delayed_filename oldpath, newpath;
};
struct io_link___delayed {
	struct delayed_filename oldpath, newpath;
};
struct io_xattr___delayed {
	struct delayed_filename filename;
};
struct io_statx___delayed {
	struct delayed_filename filename;
};
struct kiocb {
	long long ki_pos;
};
struct io_rw {
	struct kiocb kiocb;
	__u64 addr;
	__u32 len;
};
struct io_splice {
	int splice_fd_in;
};
struct io_connect {
	void *addr;
	int addr_len;
};
struct msghdr {
	void *msg_name;
	int msg_namelen;
};
struct io_async_msghdr {
	struct msghdr msg;
};
struct io_sr_msg {
	void *umsg;
	int len;
	unsigned int msg_flags;
	void *addr; /* some kernels have only a copy */
	int addr_len;
};
struct io_socket {
	int domain, type, protocol;
};
struct io_uring_sqe {
	__u32 level, optname;
	__u64 optval;
};
struct io_uring_cmd {
	const struct io_uring_sqe *sqe;
	__u32 cmd_op;
};

enum bpf_func_id {
	BPF_FUNC_find_vma = 180,
	BPF_FUNC_loop = 181,
	BPF_FUNC_get_func_arg = 183,
	BPF_FUNC_get_func_ret = 184,
	BPF_FUNC_ktime_get_tai_ns = 208,
};

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
