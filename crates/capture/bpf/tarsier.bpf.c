// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * The eBPF engines: one program body behind the ends of the kernel's functions
 * (trampoline), or tp_btf/sys_exit or the per-syscall exit tracepoints
 * (tracepoint), and the hooks of the calls that do not return where they were
 * made (execve, exit).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "../../event/include/tarsier_event.h"
#include "tables.h"
#include "maps.h"
#include "walk.h"
#include "arch.h"
#include "objects.h"
#include "match.h"
#include "gate.h"
#include "facts.h"
#include "overload.h"
#include "emit.h"
#include "object_hooks.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern struct task_struct *bpf_task_from_vpid(__s32 vpid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

/* Path argument `i`, with the directory it is relative to. */
static __always_inline void part_path(struct work *w, struct task_struct *task, __u32 i)
{
	__u8 arg = w->spec.path[i], dir = w->spec.dir[i];
	char first;

	if (arg >= 6)
		return;
	first = part_user_string(w, TARSIER_PART_PATH, i, w->args[arg]);
	if (first != '/' && dir < 6 && (__s32)w->args[dir] != AT_FDCWD)
		part_file(w, task, w->args[dir], i, TARSIER_PART_DIR);
}

static __always_inline void part_cwd(struct work *w, struct task_struct *task)
{
	struct fs_struct *fs = untrusted(task)->fs;
	struct tarsier_inode inode = {};
	struct vfsmount *mnt;
	struct mount *here;

	if (!fs)
		return;
	walk_own(w, TARSIER_PART_CWD);
	known_inode_facts(&inode, fs->pwd.dentry->d_inode);
	part_bytes(w, TARSIER_PART_CWD_INODE, &inode, sizeof(inode));
	mnt = BPF_CORE_READ(task, fs, root.mnt);
	here = real_mount(mnt);
	/* A mount that lies on the root of another one hides it; one below it is a chroot's. */
	if (fs->root.dentry != fs->root.mnt->mnt_root ||
	    BPF_CORE_READ(here, mnt_mountpoint) != BPF_CORE_READ(here, mnt_parent, mnt.mnt_root)) {
		fs = BPF_CORE_READ(task, fs);
		walk_path(w, TARSIER_PART_ROOT, (__u64)&fs->root, 0, false);
	}
}

/*
 * The process that a signal or ptrace is for, while it is surely there.
 * Where the kernel has no look-up that programs may call, the daemon looks.
 */
static __always_inline void part_target(struct work *w, __s32 pid)
{
	struct tarsier_obj_pid target = {};
	struct task_struct *task;

	if (pid <= 0 || !bpf_ksym_exists(bpf_task_from_vpid))
		return;
	task = bpf_task_from_vpid(pid);
	if (!task)
		return;
	target.pid = task->tgid;
	target.auid = task->loginuid.val;
	target.ses = task->sessionid;
	target.uid = BPF_CORE_READ(task, cred, uid.val);
	bpf_probe_read_kernel(target.comm, sizeof(target.comm), task->comm);
	bpf_task_release(task);
	part_bytes(w, TARSIER_PART_OBJ_PID, &target, sizeof(target));
}

/* A set of capabilities: one word since 6.3, two halves of one before. */
static __always_inline __u64 capabilities(const kernel_cap_t *set)
{
	__u64 value = 0;

	bpf_core_read(&value, sizeof(value), set);
	return value;
}

static __always_inline void part_capset(struct work *w, struct task_struct *task)
{
	const struct cred *cred = untrusted(task)->cred;
	struct tarsier_caps caps = {
		.pid = task->tgid,
		.inheritable = capabilities(&cred->cap_inheritable),
		.permitted = capabilities(&cred->cap_permitted),
		.effective = capabilities(&cred->cap_effective),
		.ambient = capabilities(&cred->cap_ambient),
	};

	part_bytes(w, TARSIER_PART_CAPSET, &caps, sizeof(caps));
}

static __always_inline void part_address(struct work *w, struct object_note *note)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_SOCKADDR, 0);
	__u32 len = note->address_len;

	if (!part)
		return;
	if (len > sizeof(note->address))
		len = sizeof(note->address);
	if (bpf_probe_read_kernel(part + 1, len, note->address))
		len = 0;
	part_end(w, part, len);
}

/* Whether there was room for what hooks on objects have found. */
static __always_inline bool note_parts(struct work *w, struct object_note *note)
{
	__u64 len = note->len;

	if (w->len > TARSIER_EVENT_MAX - sizeof(note->parts) || len > sizeof(note->parts) ||
	    bpf_probe_read_kernel(frame_at(w, w->len), len, note->parts))
		return false;
	w->len += len;
	w->parts += note->count;
	if (note->address_len)
		part_address(w, note);
	return true;
}

/* What hooks on objects have found, as parts of an event. */
static __always_inline void part_note(struct work *w, struct object_note *note)
{
	if (note->cut)
		event_of(w)->flags |= TARSIER_TRUNCATED;
	if (!note_parts(w, note)) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	if (note->has_ipc)
		part_bytes(w, TARSIER_PART_IPC, &note->ipc, sizeof(note->ipc));
	if (note->has_ipc_set)
		part_bytes(w, TARSIER_PART_IPC_SET_PERM, &note->ipc_set, sizeof(note->ipc_set));
	if (note->has_time)
		part_bytes(w, TARSIER_PART_TIME, note->time, sizeof(note->time));
}

/* Whether the call's socket address may be a path. */
static __always_inline bool names_socket(struct work *w)
{
	if (w->spec.sockaddr >= 6 || (w->spec.flags & SPEC_SOCKADDR_OUT))
		return false;
	find_fact(w, FACT_SADDR_FAM);
	return !(w->absent & (1U << FACT_SADDR_FAM)) && w->fact[FACT_SADDR_FAM] == AF_UNIX;
}

/* What the call was given in user memory, beside event_objects() for the sake of its stack. */
__noinline int event_memory(struct work *w)
{
	__u32 pair = 0;

	if (!w)
		return 0;
	if (w->spec.memory < 6 && w->args[w->spec.memory])
		part_user_bytes(w, TARSIER_PART_MEMORY, (void *)w->args[w->spec.memory],
				w->spec.memory_len, TARSIER_MEMORY_MAX);
	/* socketpair() */
	if (w->spec.kind == KIND_SOCKETCALL && w->args[0] == 8 && w->ret == 0 &&
	    !bpf_probe_read_user(&pair, sizeof(pair), (void *)((__u64)(__u32)w->args[1] + 12)))
		part_user_bytes(w, TARSIER_PART_FD_PAIR, (void *)(__u64)pair, 8, 8);
	return 0;
}

/* Whether the call touches nothing that event_objects() would collect. */
static __always_inline bool touches_nothing(struct work *w)
{
	struct table_spec *spec = &w->spec;

	/* From `path` to `fd_pair`, all of them 0xff. */
	return !w->noted && w->spec_row.a == ~0ULL && spec->how == 0xff && spec->module == 0xff &&
	       spec->kind == KIND_PLAIN;
}

/* What the call touched, as its spec says; the target of a signal apart. */
__noinline int event_objects(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_note *note;
	const void *addr;
	__u32 len;

	if (!w)
		return 0;
	note = w->noted ? note_at_end(task, w->nr) : 0;
	if (note)
		part_note(w, note);
	if (w->spec.path[0] < 6 || w->spec.path[1] < 6 || w->spec.fd < 6 || names_socket(w))
		part_cwd(w, task);
	part_path(w, task, 0);
	part_path(w, task, 1);
	if (w->spec.kind == KIND_OPEN && w->ret >= 0)
		part_file(w, task, w->ret, 0, TARSIER_PART_FILE);
	if (w->spec.fd < 6)
		part_file(w, task, w->args[w->spec.fd], 1, TARSIER_PART_FILE);
	len = sockaddr_place(w, &addr);
	if (len && !(note && note->address_len))
		part_user_bytes(w, TARSIER_PART_SOCKADDR, addr, len, 128);
	if (w->spec.fd_pair < 6 && w->ret == 0)
		part_user_bytes(w, TARSIER_PART_FD_PAIR, (void *)w->args[w->spec.fd_pair], 8, 8);
	if (w->spec.how < 6)
		part_user_bytes(w, TARSIER_PART_OPEN_HOW, (void *)w->args[w->spec.how], 24, 24);
	if (w->spec.module < 6)
		part_user_string(w, TARSIER_PART_MODULE, 0, w->args[w->spec.module]);
	if (w->spec.kind == KIND_CAPSET && w->ret == 0)
		part_capset(w, task);
	if (w->spec.kind == KIND_SOCKETCALL)
		part_user_bytes(w, TARSIER_PART_SOCKETCALL, (void *)(__u64)(__u32)w->args[1], 24,
				24);
	return 0;
}

__noinline int event_candidates(struct work *w)
{
	struct tarsier_part *part;
	__u32 n;

	if (!w)
		return 0;
	part = part_begin(w, TARSIER_PART_CANDIDATES, 0);
	if (!part)
		return 0;
	n = w->nundecided;
	if (n > TABLE_UNDECIDED_MAX)
		n = TABLE_UNDECIDED_MAX;
	n *= sizeof(struct tarsier_candidates);
	if (bpf_probe_read_kernel(part + 1, n, w->undecided))
		return 0;
	part_end(w, part, n);
	return 0;
}

struct call {
	struct table *table;
	__u64 generation;
	struct table_call what;
};

/* The tables in force and what they say about a call; false: nothing. */
static __always_inline bool find_call(struct call *call, __u32 arch, __u32 nr)
{
	call->table = this_table();
	if (!call->table || nr >= TABLE_CALLS)
		return false;
	call->generation = row_at(call->table, 0)->a;
	call->what =
		*(struct table_call *)row_at(call->table, TABLE_INDEX + arch * TABLE_CALLS + nr);
	return call->what.pages != 0;
}

static __always_inline void find_spec(struct call *call, struct work *w)
{
	w->spec_row = *row_at(call->table, call->what.spec);
}

static __always_inline bool audited(struct task_struct *task)
{
	struct task_note *note;

	if (is_daemon(task))
		return false;
	if (!control.use_task_list)
		return true;
	note = bpf_task_storage_get(&task_notes, task, 0, 0);
	return !note || !note->never;
}

static __always_inline bool call_admitted(struct call *call, struct task_struct *task,
					  const struct pt_regs *regs, __s64 ret)
{
	__u32 row = call->what.gate;

	if (!row)
		return true;
	return halves_admit((const __u32 *)row_at(call->table, row),
			    (const __u32 *)row_at(call->table, row + 1), untrusted(task), regs,
			    ret);
}

/* The programs' scratch for a call; NULL, and counted, when there is none. */
static __always_inline struct work *work_for(struct cpu_state *cpu)
{
	struct work *w = work_take();

	if (!w) {
		count_lost(cpu, TARSIER_LOSS_BUSY);
		count_rule(TARSIER_NO_RULE, true);
	}
	return w;
}

static __always_inline __u32 matched(struct call *call, struct work *w, struct task_struct *task,
				     struct cpu_state *cpu, bool returned)
{
	task_facts(w, task);
	call_facts(w, returned);
	__sync_fetch_and_add(&cpu->evaluated, 1);
	return evaluate(call->table, w, call->what.pages, call->what.npages, call->what.list);
}

/*
 * A watched call is over: match it, and record it if a rule says so. Kernel
 * functions may be called by programs on BTF hooks only.
 */
static __always_inline int call_returned(struct task_struct *task, struct pt_regs *regs, long ret,
					 __u32 nr, __u32 compat, bool kfuncs)
{
	__u32 zero = 0, verdict, flags;
	struct cpu_state *cpu;
	struct call call = {};
	struct work *w;
	bool noted;

	if (!find_call(&call, compat, nr))
		return 0;
	noted = has_objects(nr, compat) && note_end(task, regs);
	if (!call_admitted(&call, task, regs, ret))
		return 0;
	cpu = bpf_map_lookup_elem(&cpu_states, &zero);
	if (!cpu || !audited(task))
		return 0;
	w = work_for(cpu);
	if (!w)
		return 0;
	find_spec(&call, w);
	if (ret == 0 && (w->spec.kind == KIND_FORK || w->spec.kind == KIND_EXEC))
		goto out;
	w->noted = noted;
	w->arch = compat;
	w->nr = nr;
	w->ret = ret;
	call_args(w->args, regs, compat);
	verdict = matched(&call, w, task, cpu, true);
	if (verdict == VERDICT_DROP)
		goto out;
	flags = (compat ? TARSIER_COMPAT : 0) |
		(verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0);
	w->id = next_id(cpu);
	event_begin(w, call.generation, flags);
	if (!touches_nothing(w))
		event_objects(w);
	if (w->spec.memory < 6 || w->spec.kind == KIND_SOCKETCALL)
		event_memory(w);
	/* A note has every process that the signal was for. */
	if (kfuncs && w->spec.target < 6 && !noted)
		part_target(w, w->args[w->spec.target]);
	if (verdict == VERDICT_UNDECIDED)
		event_candidates(w);
	event_end(w);
out:
	work_leave(w);
	return 0;
}

static __always_inline bool watched(__u64 nr)
{
	return nr < TABLE_CALLS && control.watched[nr / 64] & (1ULL << (nr % 64));
}

/* Every entry, 32-bit ones included: a bit test for calls nobody watches. */
SEC("tp_btf/sys_exit")
int sys_exit(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	__u64 nr = call_number(regs);
	struct task_struct *task;

	if (!watched(nr) || !control.every)
		return 0;
	task = bpf_get_current_task_btf();
	return call_returned(task, regs, ctx[1], nr, entered_compat(task), true);
}

/*
 * The end of a kernel function that serves a watched call: of each function a
 * copy of `call_gate`, which knows the place of its gate and jumps to a body.
 * A program array holds programs for one prototype only, so that there is a
 * body for each of the two that these functions have.
 */
static __always_inline int function_returned(__u64 *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)ctx[0];
	struct task_struct *task;

	if (control.every)
		return 0;
	task = bpf_get_current_task_btf();
	return call_returned(task, regs, ctx[1], call_number(regs), entered_compat(task), true);
}

SEC("fexit")
int call_body(__u64 *ctx)
{
	return function_returned(ctx);
}

SEC("fexit")
int other_call_body(__u64 *ctx)
{
	return function_returned(ctx);
}

SEC("fexit")
int call_gate(__u64 *ctx)
{
	if (gate_admits(&gates[0], (const struct pt_regs *)ctx[0], ctx[1]))
		bpf_tail_call(ctx, &bodies, 0);
	return 0;
}

/* One watched call, 64-bit entry: the kernel runs it for no other. */
SEC("tracepoint")
int sys_exit_one(struct perf_sys_exit *ctx)
{
	struct task_struct *task;

	if (ctx->nr < 0 || control.every)
		return 0;
	task = bpf_get_current_task_btf();
	return call_returned(task, (struct pt_regs *)bpf_task_pt_regs(task), ctx->ret, ctx->nr, 0,
			     false);
}

/*
 * execve is about to give the task its new name: the registers still hold
 * the arguments, which are cleared before the call returns.
 */
SEC("tp_btf/task_rename")
int exec_entry(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	const struct cred *cred;
	bool compat = entered_compat(task);
	struct task_note *note;
	struct call call = {};
	struct table_spec *spec;
	__u64 nr = call_number(regs);
	__u32 zero = 0;

	if (!watched(nr) || !find_call(&call, compat, nr))
		return 0;
	spec = (struct table_spec *)row_at(call.table, call.what.spec);
	if (spec->kind != KIND_EXEC)
		return 0;
	note = bpf_task_storage_get(&task_notes, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!note) {
		struct cpu_state *cpu = bpf_map_lookup_elem(&cpu_states, &zero);

		if (cpu)
			count_lost(cpu, TARSIER_LOSS_NO_MEMORY);
		count_rule(TARSIER_NO_RULE, true);
		return 0;
	}
	call_args(note->exec_args, regs, compat);
	note->exec_nr = nr;
	note->exec_compat = compat;
	note->exec_valid = 1;
	cred = untrusted(task)->cred;
	note->old_caps[0] = capabilities(&cred->cap_inheritable);
	note->old_caps[1] = capabilities(&cred->cap_permitted);
	note->old_caps[2] = capabilities(&cred->cap_effective);
	note->old_caps[3] = capabilities(&cred->cap_ambient);
	note->old_uid = BPF_CORE_READ(cred, uid.val);
	return 0;
}

static __always_inline void part_kernel_string(struct work *w, __u16 tag, const char *text)
{
	struct tarsier_part *part = part_begin(w, tag, 0);
	long n;

	if (!part)
		return;
	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	n = bpf_probe_read_kernel_str(frame_at(w, w->len + sizeof(*part)), TARSIER_PATH_MAX, text);
	part_end(w, part, n > 0 ? n - 1 : 0);
}

/* Identity of the executable and the interpreter's name: PART_EXEC_FILE. */
static __always_inline void part_exec_file(struct work *w, struct linux_binprm *bprm)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_EXEC_FILE, 0);
	struct file *file = bprm->file;
	__u32 len = sizeof(struct tarsier_inode);
	long n;

	if (!part)
		return;
	if (w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64) {
		event_of(w)->flags |= TARSIER_TRUNCATED;
		return;
	}
	inode_facts((struct tarsier_inode *)(part + 1), BPF_CORE_READ(file, f_inode));
	if (bprm->interp != bprm->filename) {
		n = bpf_probe_read_kernel_str(frame_at(w, w->len + sizeof(*part) + len),
					      TARSIER_PATH_MAX, bprm->interp);
		if (n > 0)
			len += n - 1;
	}
	part_end(w, part, len);
}

/* Capabilities before and after: the daemon decides whether BPRM_FCAPS tells them. */
static __always_inline void part_fcaps(struct work *w, struct task_struct *task,
				       struct task_note *note)
{
	const struct cred *cred = untrusted(task)->cred;
	struct tarsier_fcaps caps = {};

	caps.old.inheritable = note->old_caps[0];
	caps.old.permitted = note->old_caps[1];
	caps.old.effective = note->old_caps[2];
	caps.old.ambient = note->old_caps[3];
	caps.old.pid = note->old_uid; /* whose capabilities they were */
	caps.new.inheritable = capabilities(&cred->cap_inheritable);
	caps.new.permitted = capabilities(&cred->cap_permitted);
	caps.new.effective = capabilities(&cred->cap_effective);
	caps.new.ambient = capabilities(&cred->cap_ambient);
	part_bytes(w, TARSIER_PART_BPRM_FCAPS, &caps, sizeof(caps));
}

/* Sends argv as chunks; how many, or -1 when the event has to be given up. */
static __always_inline int send_argv(struct work *w, struct task_struct *task, __u64 id)
{
	unsigned long start = BPF_CORE_READ(task, mm, arg_start);
	unsigned long end = BPF_CORE_READ(task, mm, arg_end);
	__u32 cpu_nr = bpf_get_smp_processor_id();
	struct chunks chunks = {
		.start = start,
		.len = end - start,
		.id = id,
		.ring = bpf_map_lookup_elem(&rings, &cpu_nr),
		.w = w,
	};

	if (!chunks.ring)
		return -1;
	bpf_loop(TARSIER_CHUNKS_MAX, chunk_step, &chunks, 0);
	return chunks.failed == 1 ? -1 : (int)chunks.sent;
}

static __noinline int exec_event(struct linux_binprm *bprm, struct work *w, struct task_note *note,
				 __u64 generation, struct cpu_state *cpu)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 undecided = w->nundecided ? TARSIER_UNDECIDED : 0;
	int chunks;

	w->id = next_id(cpu);
	chunks = send_argv(w, task, w->id);
	if (chunks < 0) {
		count_lost(cpu, TARSIER_LOSS_RING_FULL);
		count_rule(w->rule, true);
		return 0;
	}
	event_begin(w, generation, TARSIER_ENTRY_ARGS | (w->arch ? TARSIER_COMPAT : 0) | undecided);
	event_of(w)->chunks = chunks;
	part_cwd(w, task);
	part_kernel_string(w, TARSIER_PART_PATH, bprm->filename);
	part_exec_file(w, bprm);
	part_fcaps(w, task, note);
	if (undecided)
		event_candidates(w);
	event_end(w);
	return 0;
}

/* execve succeeded: the task is the new image, and its argv is in place. */
SEC("tp_btf/sched_process_exec")
int exec_done(__u64 *ctx)
{
	struct linux_binprm *bprm = (struct linux_binprm *)ctx[2];
	struct task_struct *task = bpf_get_current_task_btf();
	struct task_note *note = bpf_task_storage_get(&task_notes, task, 0, 0);
	struct call call = {};
	struct cpu_state *cpu;
	__u32 zero = 0;
	struct work *w;

	if (!note || !note->exec_valid)
		return 0;
	note->exec_valid = 0;
	cpu = bpf_map_lookup_elem(&cpu_states, &zero);
	if (!cpu || !audited(task) || !find_call(&call, note->exec_compat & 1, note->exec_nr))
		return 0;
	w = work_for(cpu);
	if (!w)
		return 0;
	find_spec(&call, w);
	w->arch = note->exec_compat & 1;
	w->nr = note->exec_nr;
	w->ret = 0;
	__builtin_memcpy(w->args, note->exec_args, sizeof(w->args));
	if (matched(&call, w, task, cpu, true) != VERDICT_DROP)
		exec_event(bprm, w, note, call.generation, cpu);
	work_leave(w);
	return 0;
}

/* exit and exit_group do not return: the event is made while they are under way. */
static __always_inline int exit_event(bool at_end)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	__u32 zero = 0, verdict, compat = entered_compat(task);
	__u64 nr = call_number(regs);
	struct call call = {};
	struct cpu_state *cpu;
	struct work *w;

	/* Where both hooks are armed, each sees the entries that the other does not. */
	if (control.exit_at_entry && at_end != compat)
		return 0;
	if (!watched(nr) || !find_call(&call, compat, nr) || !call_admitted(&call, task, regs, 0))
		return 0;
	cpu = bpf_map_lookup_elem(&cpu_states, &zero);
	if (!cpu || !audited(task))
		return 0;
	w = work_for(cpu);
	if (!w)
		return 0;
	find_spec(&call, w);
	if (w->spec.kind != KIND_EXIT)
		goto out;
	w->arch = compat;
	w->nr = nr;
	w->ret = 0;
	call_args(w->args, regs, compat);
	verdict = matched(&call, w, task, cpu, false);
	if (verdict == VERDICT_DROP)
		goto out;
	w->id = next_id(cpu);
	event_begin(w, call.generation,
		    TARSIER_NO_RETURN | (compat ? TARSIER_COMPAT : 0) |
			    (verdict == VERDICT_UNDECIDED ? TARSIER_UNDECIDED : 0));
	if (verdict == VERDICT_UNDECIDED)
		event_candidates(w);
	event_end(w);
out:
	work_leave(w);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int exit_call(__u64 *ctx)
{
	return exit_event(true);
}

/*
 * The entry of these calls, for kernels before 6.16: there the task has given
 * up its memory, and with it its executable, before sched_process_exit.
 */
SEC("tracepoint")
int exit_entry(void *ctx)
{
	return exit_event(false);
}

#include "uring.h"

/* A task was made: does the task list keep it from being audited? */
SEC("tp_btf/sched_process_fork")
int task_made(__u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];
	struct task_note *note;
	struct call call = {};
	struct work *w;
	__u32 verdict;
	bool never;

	if (!control.use_task_list)
		return 0;
	call.table = this_table();
	if (!call.table)
		return 0;
	call.what = *(struct table_call *)row_at(call.table, TABLE_TASK_LIST);
	/* Without scratch the task is audited: too much rather than too little. */
	w = work_take();
	if (!w)
		return 0;
	task_facts(w, child);
	w->absent = ~(1U << FACT_UID | 1U << FACT_EUID | 1U << FACT_SUID | 1U << FACT_FSUID |
		      1U << FACT_GID | 1U << FACT_EGID | 1U << FACT_SGID | 1U << FACT_FSGID |
		      1U << FACT_AUID | 1U << FACT_PERS | 1U << FACT_PID | 1U << FACT_PPID |
		      1U << FACT_SES);
	verdict = evaluate(call.table, w, call.what.pages, call.what.npages, call.what.list);
	never = verdict == VERDICT_DROP && w->rule != TARSIER_NO_RULE;
	work_leave(w);
	if (!never)
		return 0;
	note = bpf_task_storage_get(&task_notes, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (note)
		note->never = 1;
	return 0;
}
