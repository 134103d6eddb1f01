/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Paths of an event, also those that are no arguments of their own: bpf(2), fsconfig(2), options of mount(2). */
#ifndef TARSIER_INNER_PATHS_H
#define TARSIER_INNER_PATHS_H

#include "addresses.h"
#include "base.h"
#include "emit.h"
#include "files.h"
#include "walk.h"

/* Notes the PATH part at `at` of the frame, if it is whole: event_names() finds what it leads to. */
static __always_inline void take_path(struct work *w, __u32 i, __u32 at)
{
	struct tarsier_part *part = frame_at(w, at);

	if (w->len == at || part->flags)
		return;
	w->find.path_at[i & 1] = at + sizeof(*part);
	w->find.path_len[i & 1] = part->len;
}

#define BPF_COMMAND_OBJ_PIN 6
#define BPF_COMMAND_OBJ_GET 7
#define BPF_FLAG_PATH_FD (1 << 14)

/* Whether the call is given a path that is no argument of its own: bpf(2) of an object, or what fsconfig(2) sets. */
static __always_inline bool has_object_path(struct work *w)
{
	__u32 command = w->args[0];

	if (w->spec.kind == KIND_FSCONFIG)
		return true;
	return w->spec.kind == KIND_BPF &&
	       (command == BPF_COMMAND_OBJ_PIN || command == BPF_COMMAND_OBJ_GET);
}

/* Adds that path: { __u64 pathname; __u32 bpf_fd, file_flags; } of union bpf_attr. */
static __always_inline void part_object_path(struct work *w)
{
	__u64 attr[2] = {};

	if (bpf_probe_read_user(attr, sizeof(attr), (void *)w->args[1]) ||
	    attr[1] >> 32 & BPF_FLAG_PATH_FD)
		attr[0] = 0;
	part_user_string(w, TARSIER_PART_PATH, 0, attr[0]);
}

/* linux/mount.h */
#define FSCONFIG_SET_STRING 1
#define FSCONFIG_SET_PATH 3
#define FSCONFIG_SET_PATH_EMPTY 4
#define FSCONFIG_CMD_CREATE 6
#define FSCONFIG_CMD_CREATE_EXCL 8

/* Adds the source of the file system that the descriptor of fsconfig(2) stands for, as a path. */
static __always_inline void part_source(struct work *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fs_context *context;
	struct tarsier_part *part;
	struct file *file;
	long n;

	if (!TYPE_HAS(fs_context, source) || w->len > TARSIER_EVENT_MAX - TARSIER_PATH_MAX - 64)
		return;
	/* The descriptor stands for something else, or may since another task has changed it. */
	if (w->ret == -EBADF || w->ret == -EINVAL || !has_own_files(task))
		return;
	file = file_of(task, w->args[0]);
	context = file ? READ(file, private_data) : 0;
	if (!context || !READ(context, source))
		return;
	part = part_begin(w, TARSIER_PART_PATH, 0);
	if (!part)
		return;
	n = bpf_probe_read_kernel_str(frame_at(w, w->len + sizeof(*part)), TARSIER_PATH_MAX,
				      READ(context, source));
	part_end(w, part, n > 0 ? n - 1 : 0);
}

/* Adds the value and the key of an option that fsconfig(2) sets, as paths, or the source of what it creates. */
static __always_inline void part_option(struct work *w)
{
	__u32 command = w->args[1];

	if (command == FSCONFIG_SET_STRING || command == FSCONFIG_SET_PATH ||
	    command == FSCONFIG_SET_PATH_EMPTY) {
		part_user_string(w, TARSIER_PART_PATH, 0, w->args[3]);
		part_user_string(w, TARSIER_PART_PATH, 1, w->args[2]);
	}
	if (command == FSCONFIG_CMD_CREATE || command == FSCONFIG_CMD_CREATE_EXCL)
		part_source(w);
}

/*
 * Adds the options of mount(2), as the third path, if they are those of overlayfs: they name directories. And the kind
 * of file system, as the fourth: it says whether the source is looked up.
 */
static __always_inline void part_overlay(struct work *w)
{
	char type[8] = {};

	if (bpf_probe_read_user_str(type, sizeof(type), (void *)w->args[2]) == sizeof(type) &&
	    !__builtin_memcmp(type, "overlay", sizeof(type)))
		part_user_string(w, TARSIER_PART_PATH, 2, w->args[4]);
	part_user_string(w, TARSIER_PART_PATH, 3, w->args[2]);
}

/* Adds the paths of the call that are no arguments of their own. */
__noinline int event_inner_paths(struct work *w)
{
	__u32 at;

	if (!w)
		return 0;
	at = w->len;
	if (w->spec.kind == KIND_FSCONFIG)
		part_option(w);
	else if (has_object_path(w))
		part_object_path(w);
	if (w->spec.kind == KIND_MOUNT)
		part_overlay(w);
	else
		take_path(w, 0, at);
	return 0;
}

#endif /* TARSIER_INNER_PATHS_H */
