/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Hooks on the functions that set the clock: they note what calls change. */
#include "base.h"
#include "hook_forms.h"

/* Offsets of the members of struct __kernel_timex that are read, and flags. */
#define TIMEX_SEC 72
#define TIMEX_FRACTION 80
#define ADJ_SETOFFSET 0x100
#define ADJ_NANO 0x2000

static __always_inline __s64 number_at(__u64 address)
{
	__s64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)address);
	return value;
}

static __always_inline void time_begin(struct object_note *note)
{
	if (!note->has_time)
		__builtin_memset(note->time, 0, sizeof(note->time));
	note->has_time = 1;
}

/*
 * adjtimex and clock_adjtime. __do_adjtimex() runs while the clock is being written and must not be
 * read. The note is allocated here, before that, because an allocation can wake a task that reads
 * the clock.
 */
AT_ENTRY(do_adjtimex, )
{
	struct object_note *note = note_of(OBJECTS_TIME);

	if (note)
		time_begin(note);
	return 0;
}

static __always_inline struct object_note *time_note(void)
{
	struct object_note *note =
		bpf_task_storage_get(&object_notes, bpf_get_current_task_btf(), 0, 0);

	return note && note->open && note->has_time ? note : 0;
}

/* At this point, an offset has already been added. `values`: address of a struct audit_ntp_data. */
static __always_inline int clock_adjusts(__u64 timex, __u64 values)
{
	struct object_note *note = time_note();
	__u32 modes;

	if (!note)
		return 0;
	note->kept[0] = values;
	modes = number_at(timex);
	if (!(modes & ADJ_SETOFFSET))
		return 0;
	note->time[0] = number_at(timex + TIMEX_SEC);
	note->time[1] = number_at(timex + TIMEX_FRACTION) * (modes & ADJ_NANO ? 1 : 1000);
	return 0;
}

static __always_inline int clock_adjusted(void)
{
	struct object_note *note = time_note();

	if (note)
		bpf_probe_read_kernel(&note->time[2],
				      sizeof(note->time) - 2 * sizeof(note->time[0]),
				      (void *)note->kept[0]);
	return 0;
}

#define CLOCK_HOOKS(function, timex, values)                                                       \
	AT_ENTRY(function, )                                                                       \
	{                                                                                          \
		return clock_adjusts(argument(ctx, timex, probed), argument(ctx, values, probed)); \
	}                                                                                          \
	AT_END(function, )                                                                         \
	{                                                                                          \
		return clock_adjusted();                                                           \
	}

CLOCK_HOOKS(__do_adjtimex, 0, 3)
/* Called since Linux 6.17; its first argument is the number of the clock. */
CLOCK_HOOKS(ntp_adjtimex, 1, 4)

/* By how much the wall clock (as TAI) is ahead of the monotonic clock, which cannot be set. */
static __always_inline __s64 clock_ahead_ns(void)
{
	if (!HAS_HELPER(ktime_get_tai_ns))
		return 0;
	return bpf_ktime_get_tai_ns() - bpf_ktime_get_ns();
}

AT_ENTRY(do_settimeofday64, )
{
	struct object_note *note = note_of(OBJECTS_TIME);

	if (!note)
		return 0;
	time_begin(note);
	note->time[1] = clock_ahead_ns();
	return 0;
}

AT_END(do_settimeofday64, )
{
	struct object_note *note = note_of(OBJECTS_TIME);
	__s64 by;

	if (!note || !note->has_time)
		return 0;
	by = (__s32)result(ctx, 2, probed) ? 0 : clock_ahead_ns() - note->time[1];
	note->time[0] = 0;
	note->time[1] = by;
	return 0;
}
