// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Frames that tell the daemon of the lives of processes, so that it knows the ancestors of an event's
 * process even if they are gone by the time the event is read, and the classes of processes. These
 * programs are attached only if the log is to name ancestors, or rules ask about processes.
 *
 * The maker of a process is the one that called fork, also with CLONE_PARENT: a process cannot choose
 * its ancestors.
 */
#include "copies.h"
#include "emit.h"
#include "parts.h"
#include "process_class.h"
#include "steps.h"

#define SAME_PLACE(member)                                                       \
	_Static_assert(__builtin_offsetof(struct tarsier_process, member) ==     \
			       __builtin_offsetof(struct tarsier_event, member), \
		       "functions for events write it")
SAME_PLACE(flags);
SAME_PLACE(cpu);
SAME_PLACE(parts);

/* Changes that a copy of a program has told already. */
struct process_key {
	__u64 start_time_ns;
	__u64 image;
	__u32 pid;
	__u32 change;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct process_key);
	__type(value, __u32);
} processes_told SEC(".maps");

#define PROCESSES_ARE_KNOWN                                                              \
	(TYPE_HAS(task_struct, group_leader) && TYPE_HAS(task_struct, start_boottime) && \
	 TYPE_HAS(task_struct, self_exec_id) && TYPE_HAS(task_struct, signal) &&         \
	 TYPE_HAS(signal_struct, live))

static __always_inline struct tarsier_process *process_of(struct work *w)
{
	return (struct tarsier_process *)w->frame;
}

/* Begins the frame of the process that `task` is a thread of. */
static __always_inline void process_begin(struct work *w, struct task_struct *task, __u32 change)
{
	struct tarsier_process *p = process_of(w);

	p->frame.kind = TARSIER_FRAME_PROCESS;
	p->frame.version = TARSIER_WIRE_VERSION;
	p->frame.id = 0;
	p->frame.time_ns = bpf_ktime_get_ns();
	p->start_time_ns = READ(task, group_leader, start_boottime);
	p->pid = READ(task, tgid);
	p->flags = 0;
	p->cpu = bpf_get_smp_processor_id();
	p->image = READ(task, self_exec_id);
	p->maker_start_ns = 0;
	p->maker = 0;
	p->change = change;
	w->len = sizeof(*p);
	w->parts = 0;
	w->fact[FACT_UID] = (__u32)bpf_get_current_uid_gid();
}

static __always_inline void process_maker(struct work *w, struct task_struct *maker)
{
	process_of(w)->maker = READ(maker, tgid);
	process_of(w)->maker_start_ns = READ(maker, group_leader, start_boottime);
}

/* Adds path and identity of the executable. */
static __always_inline void process_exe(struct work *w, struct task_struct *task)
{
	struct file *exe = READ(task, mm, exe_file);
	struct tarsier_part *part;

	if (!exe || !HAS(exe, f_path))
		return;
	walk_path(w, TARSIER_PART_EXE, (__u64)&exe->f_path, 0, false);
	part = part_begin(w, TARSIER_PART_EXEC_FILE, 0);
	if (!part)
		return;
	inode_facts((struct tarsier_inode *)(part + 1), READ(exe, f_inode));
	part_end(w, part, sizeof(struct tarsier_inode));
}

/* Adds the path of the script that execve was given, if it was one. */
static __always_inline void process_script(struct work *w, struct linux_binprm *bprm)
{
	char first = 0;

	if (!HAS(bprm, interp) || !HAS(bprm, filename) || bprm->interp == bprm->filename)
		return;
	part_kernel_string(w, TARSIER_PART_PATH, bprm->filename);
	bpf_probe_read_kernel(&first, 1, bprm->filename);
	if (first != '/')
		walk_cwd(w);
}

/* Adds the command line that execve has just put into the memory of the task. */
static __always_inline void process_title(struct work *w, struct task_struct *task)
{
	struct tarsier_part *part = part_begin(w, TARSIER_PART_PROCTITLE, 0);
	__u64 start = 0, len = 0;

	if (!part)
		return;
	if (ARGUMENTS_ARE_KNOWN) {
		start = READ(task, mm, arg_start);
		len = READ(task, mm, arg_end) - start;
	}
	if (len > TARSIER_PROCTITLE_MAX) {
		len = TARSIER_PROCTITLE_MAX;
		part->flags |= TARSIER_PART_CUT;
	}
	if (!start || bpf_probe_read_user(part + 1, len, (void *)start)) {
		part->flags |= TARSIER_PART_UNREADABLE;
		len = 0;
	}
	part_end(w, part, len);
}

/* The length of the finished frame. */
static __always_inline __u32 process_size(struct work *w)
{
	__u32 size = w->len;

	if (size > TARSIER_EVENT_MAX + FRAME_SLACK)
		size = TARSIER_EVENT_MAX + FRAME_SLACK;
	process_of(w)->frame.size = size;
	process_of(w)->parts = w->parts;
	return size;
}

/*
 * Puts the finished frame into the ring. Returns 1 if there is no room for it. Who makes many processes
 * is slowed down, or loses frames, as with events. Where nobody reads, three quarters of the ring are
 * left to events.
 */
__noinline int process_out(struct work *w)
{
	struct cpu_state *cpu = state_of_cpu();
	__u64 fill, end = control.ring_bytes - control.reserve_bytes;
	__u32 cpu_nr, size;
	bool is_read;
	void *ring;

	if (!w || !cpu)
		return 1;
	size = process_size(w);
	cpu_nr = process_of(w)->cpu;
	ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	if (!ring)
		return 1;
	fill = ask_fill(cpu, ring);
	if (fill < control.ring_bytes / 8)
		cpu->taken_ns = process_of(w)->frame.time_ns;
	is_read = is_reader_alive(cpu, process_of(w)->frame.time_ns);
	if (!is_read)
		end = control.ring_bytes / 4;
	if (fill + size + RING_HEADER > end ||
	    ((!is_read || !control.throttle) && over_share(w, fill, size, 0, false)) ||
	    bpf_ringbuf_output(ring, w->frame, size, BPF_RB_NO_WAKEUP))
		return 1;
	/* A daemon that sleeps need not be woken: the next event does that. */
	fill = record_counted(cpu, ring, size, BOUND_SUFFICES);
	if (fill)
		slow_down(w, cpu, fill, size);
	return 0;
}

/* Whether no other copy of the program has told of this change. */
static __always_inline bool process_is_new(struct task_struct *task, __u32 change)
{
	struct process_key key = { .change = change };
	__u32 one = 1;

	if (!control.copies)
		return true;
	key.start_time_ns = READ(task, group_leader, start_boottime);
	key.image = READ(task, self_exec_id);
	key.pid = READ(task, tgid);
	return !bpf_map_update_elem(&processes_told, &key, &one, BPF_NOEXIST);
}

/*
 * Tells that `task`, the current one or its new child, has changed. `bprm`: what it executes, or
 * NULL.
 */
static __always_inline int process_changed(struct task_struct *task, __u32 change,
					   struct linux_binprm *bprm)
{
	struct cpu_state *cpu = state_of_cpu();
	struct work *w;

	if (!cpu || !process_is_new(task, change))
		return 0;
	w = work_take();
	if (w) {
		if (bprm)
			class_executes(w);
		process_begin(w, task, change);
		if (change == TARSIER_PROCESS_MADE)
			process_maker(w, bpf_get_current_task_btf());
		if (change == TARSIER_PROCESS_EXECUTED) {
			process_exe(w, task);
			process_title(w, task);
			if (bprm)
				process_script(w, bprm);
		}
	}
	if (!w || process_out(w))
		__sync_fetch_and_add(&cpu->processes_lost, 1);
	if (w)
		work_leave(w);
	return 0;
}

static __always_inline int process_begins(__u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];

	/* Threads are not told of. */
	if (!PROCESSES_ARE_KNOWN || child->pid != child->tgid)
		return 0;
	class_of_child(child);
	return process_changed(child, TARSIER_PROCESS_MADE, 0);
}

COPIES("tp_btf/sched_process_fork", process_made, process_begins(ctx))

static __always_inline int process_executes(__u64 *ctx)
{
	if (!PROCESSES_ARE_KNOWN)
		return 0;
	return process_changed(bpf_get_current_task_btf(), TARSIER_PROCESS_EXECUTED,
			       (struct linux_binprm *)ctx[2]);
}

COPIES("tp_btf/sched_process_exec", process_exec, process_executes(ctx))

static __always_inline int process_ends(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	/* Threads that are not the last are not told of. */
	if (!PROCESSES_ARE_KNOWN || READ(task, signal, live.counter))
		return 0;
	class_ends();
	return process_changed(task, TARSIER_PROCESS_ENDED, 0);
}

COPIES("tp_btf/sched_process_exit", process_ended, process_ends())

/* A length of a frame, bounded for the verifier. In assembly, as in frame_at(). */
static __always_inline __u64 found_size(__u64 size)
{
	asm volatile("%[size] &= %[mask]" : [size] "+r"(size) : [mask] "i"(FRAME_MASK));
	return size;
}

#define PROCESSES_CAN_BE_LISTED                                              \
	(TYPE_HAS(bpf_iter__task, task) && TYPE_HAS(bpf_iter__task, meta) && \
	 TYPE_HAS(bpf_iter_meta, seq))

/* Writes the frame of a process that there is. */
static __always_inline void found_out(struct seq_file *seq, struct work *w,
				      struct task_struct *task, __u32 change)
{
	process_begin(w, task, change);
	process_maker(w, READ(task, real_parent));
	process_exe(w, task);
	bpf_seq_write(seq, w->frame, found_size(process_size(w)));
}

/* As many ancestors as the daemon keeps, and one more. */
#define OWN_ANCESTORS_MAX 33

/* For the steps of the loop over ancestors. */
struct ancestors {
	struct seq_file *seq;
	struct work *w;
	struct task_struct *task;
};

STEP(ancestor_step, struct ancestors *above, OWN_ANCESTORS_MAX)
{
	struct task_struct *task = above->task;
	struct task_struct *parent = READ(task, real_parent, group_leader);

	if (!parent || !READ(parent, tgid))
		return 1;
	above->task = parent;
	found_out(above->seq, above->w, parent, TARSIER_PROCESS_ABOVE);
	return 0;
}

/* All processes that there are, for a daemon that has just attached the programs above. */
SEC("iter/task")
int process_found(struct bpf_iter__task *ctx)
{
	struct ancestors above;
	struct task_struct *task;
	struct work *w;

	if (!PROCESSES_ARE_KNOWN || !PROCESSES_CAN_BE_LISTED)
		return 0;
	task = ctx->task;
	if (!task || task->pid != task->tgid)
		return 0;
	/* The ENDED frame of a process that has not been waited for may have been read. */
	if (!READ(task, signal, live.counter))
		return 0;
	w = work_take();
	if (!w)
		return 0;
	above.w = w;
	above.seq = ctx->meta->seq;
	above.task = task;
	found_out(above.seq, w, task,
		  READ(task, flags) & PF_KTHREAD ? TARSIER_PROCESS_KERNEL : TARSIER_PROCESS_FOUND);
	/* Of its own ancestors, the daemon's pid namespace may not show all. */
	if (task->tgid == bpf_get_current_pid_tgid() >> 32)
		REPEAT(ancestor_step, &above);
	work_leave(w);
	return 0;
}
