// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * Frames that tell the daemon which cgroups there are, so that it knows the path of an event's
 * cgroup even if that is gone by the time the event is read; and the classes of cgroups, by which
 * rules are matched.
 *
 * Both tracepoints are called under cgroup_mutex and a spinlock with interrupts off, once at a time
 * on the whole machine: so no copies, and nothing here waits. mkdir is reported before the cgroup
 * can be seen (cgroup_mkdir(), kernel/cgroup/cgroup.c). cgroup2 has no rename.
 */
#include "cgroup_class.h"
#include "emit.h"

#define CGROUPS_ARE_KNOWN                                          \
	(TYPE_HAS(cgroup, kn, id) && TYPE_HAS(cgroup, kn, name) && \
	 TYPE_HAS(cgroup, root, hierarchy_id) && TYPE_HAS(cgroup, self.parent, cgroup))

/* A length below the power of two above the longest frame. In assembly, as in frame_at(). */
static __always_inline __u64 cgroup_frame_size(__u64 size)
{
	asm volatile("%[size] &= %[mask]" : [size] "+r"(size) : [mask] "i"(511));
	return size;
}

/* Puts the frame of `size` bytes into the ring. Returns 1 if there is no room for it. */
static __always_inline int cgroup_out(struct work *w, struct cpu_state *cpu, __u64 size)
{
	__u32 cpu_nr = bpf_get_smp_processor_id();
	void *ring = bpf_map_lookup_elem(&rings, &cpu_nr);
	__u64 fill;

	if (!ring)
		return 1;
	fill = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	if (fill + size + RING_HEADER > control.ring_bytes - control.reserve_bytes ||
	    over_share(w, fill, size, 0, false) ||
	    bpf_ringbuf_output(ring, w->frame, cgroup_frame_size(size), BPF_RB_NO_WAKEUP))
		return 1;
	record_went(cpu, ring, size, BOUND_LACKS_FRAME, false);
	return 0;
}

static __always_inline struct kernfs_node *parent_of(struct cgroup *cgroup)
{
	struct cgroup_subsys_state *parent = READ(cgroup, self.parent);

	return READ(parent, cgroup, kn);
}

/* Whether only root may make cgroups in this directory. Without attributes of its own, it is root's. */
static __always_inline bool is_of_root(struct kernfs_node *dir)
{
	struct kernfs_iattrs *iattr;

	if (!TYPE_HAS(kernfs_node, iattr) || !TYPE_HAS(kernfs_node, mode) ||
	    !TYPE_HAS(kernfs_iattrs, ia_uid) || READ(dir, mode) & 022)
		return false;
	iattr = READ(dir, iattr);
	return !iattr || !READ(iattr, ia_uid.val);
}

static __always_inline int cgroup_told(struct work *w, struct cpu_state *cpu, struct cgroup *cgroup,
				       __u16 flags)
{
	struct tarsier_cgroup *frame = (struct tarsier_cgroup *)w->frame;
	long n = bpf_probe_read_kernel_str(frame + 1, NAME_MAX_LEN, READ(cgroup, kn, name));

	if (n < 1)
		return 1;
	frame->frame.kind = TARSIER_FRAME_CGROUP;
	frame->frame.version = TARSIER_WIRE_VERSION;
	frame->frame.id = 0;
	frame->frame.size = sizeof(*frame) + ((n - 1 + 7) & ~7ULL);
	frame->id = READ(cgroup, kn, id);
	frame->parent = READ(parent_of(cgroup), id);
	frame->flags = flags;
	frame->len = n - 1;
	frame->cpu = bpf_get_smp_processor_id();
	w->fact[FACT_UID] = (__u32)bpf_get_current_uid_gid();
	frame->frame.time_ns = bpf_ktime_get_ns();
	return cgroup_out(w, cpu, frame->frame.size);
}

static __always_inline int cgroup_changed(__u64 *ctx, __u16 flags)
{
	struct cgroup *cgroup = (struct cgroup *)ctx[0];
	struct cpu_state *cpu = state_of_cpu();
	struct kernfs_node *parent;
	struct work *w;
	__u64 id;

	/* Ids are unique within a hierarchy only. Number 0 is cgroup2, whose ids events have. */
	if (!cpu || !CGROUPS_ARE_KNOWN || READ(cgroup, root, hierarchy_id))
		return 0;
	w = work_take();
	id = READ(cgroup, kn, id);
	parent = parent_of(cgroup);
	if (is_of_root(parent))
		flags |= TARSIER_CGROUP_OF_ROOT;
	if (flags & TARSIER_CGROUP_REMOVED)
		bpf_map_delete_elem(&workloads, &id);
	else if (w && control.workload_epoch)
		classify(w, id, READ(parent, id), READ(cgroup, kn, name),
			 flags & TARSIER_CGROUP_OF_ROOT);
	if (!w || cgroup_told(w, cpu, cgroup, flags))
		__sync_fetch_and_add(&cpu->cgroups_lost, 1);
	if (w)
		work_leave(w);
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int cgroup_made(__u64 *ctx)
{
	return cgroup_changed(ctx, 0);
}

SEC("tp_btf/cgroup_rmdir")
int cgroup_removed(__u64 *ctx)
{
	return cgroup_changed(ctx, TARSIER_CGROUP_REMOVED);
}
