/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What root can try against a capture by bpf(2).
 *
 *   attack zero MAP BYTES   sets the first bytes of the value of slot 0 to zero, of each map whose name ends so
 *   attack flip MAP BYTE    flips all bits of the four bytes from BYTE on, in each value of each map with this name
 *   attack tables           puts an empty table in the place of the match tables
 *   attack detach           detaches all links
 *
 * Prints how many objects were changed and how many changes the kernel refused: `CHANGED REFUSED`.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned changed, refused;

static int bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static void count(int failed)
{
	if (failed)
		refused++;
	else
		changed++;
}

/* The next id after `id`, or 0. */
static __u32 next(enum bpf_cmd next_id, __u32 id)
{
	union bpf_attr attr = { .start_id = id };

	return bpf(next_id, &attr) ? 0 : attr.next_id;
}

static int open_by_id(enum bpf_cmd get, __u32 id)
{
	union bpf_attr attr = { .start_id = id };

	return bpf(get, &attr);
}

static int info_of(int fd, struct bpf_map_info *info)
{
	union bpf_attr attr = {
		.info = { .bpf_fd = fd, .info_len = sizeof(*info), .info = (__u64)info }
	};

	memset(info, 0, sizeof(*info));
	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static int access_slot(enum bpf_cmd how, int fd, void *value)
{
	__u32 slot = 0;
	union bpf_attr attr = { .map_fd = fd, .key = (__u64)&slot, .value = (__u64)value };

	return bpf(how, &attr);
}

static int ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), of_end = strlen(end);

	return length >= of_end && !strcmp(name + length - of_end, end);
}

static void zero(const char *name, size_t bytes)
{
	for (__u32 id = 0; (id = next(BPF_MAP_GET_NEXT_ID, id));) {
		int fd = open_by_id(BPF_MAP_GET_FD_BY_ID, id);
		struct bpf_map_info info;
		char *value;

		if (fd < 0 || info_of(fd, &info) || !ends_with(info.name, name))
			continue;
		value = calloc(1, info.value_size);
		if (!value || bytes > info.value_size ||
		    access_slot(BPF_MAP_LOOKUP_ELEM, fd, value))
			exit(1);
		memset(value, 0, bytes);
		count(access_slot(BPF_MAP_UPDATE_ELEM, fd, value));
		free(value);
		close(fd);
	}
}

static void flip_in(int fd, const struct bpf_map_info *info, size_t byte)
{
	char *key = calloc(1, info->key_size), *value = calloc(1, info->value_size);
	union bpf_attr attr = { .map_fd = fd, .next_key = (__u64)key };

	if (!key || !value || byte + 4 > info->value_size)
		exit(1);
	while (!bpf(BPF_MAP_GET_NEXT_KEY, &attr)) {
		union bpf_attr at = { .map_fd = fd, .key = (__u64)key, .value = (__u64)value };

		attr.key = (__u64)key;
		/* An entry may be gone by now. */
		if (bpf(BPF_MAP_LOOKUP_ELEM, &at))
			continue;
		for (int i = 0; i < 4; i++)
			value[byte + i] ^= 0xff;
		at.flags = BPF_EXIST;
		count(bpf(BPF_MAP_UPDATE_ELEM, &at));
	}
	free(key);
	free(value);
}

static void flip(const char *name, size_t byte)
{
	for (__u32 id = 0; (id = next(BPF_MAP_GET_NEXT_ID, id));) {
		int fd = open_by_id(BPF_MAP_GET_FD_BY_ID, id);
		struct bpf_map_info info;

		if (fd >= 0 && !info_of(fd, &info) && !strcmp(info.name, name))
			flip_in(fd, &info, byte);
		close(fd);
	}
}

/* An array like the tables, with rows of zeros. */
static int empty_table(__u32 bytes)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = 4,
		.value_size = bytes,
		.max_entries = 1,
		.map_flags = BPF_F_MMAPABLE,
		.map_name = "empty",
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

static void replace_tables(void)
{
	__u32 bytes = 0;
	int outer = -1;

	for (__u32 id = 0; (id = next(BPF_MAP_GET_NEXT_ID, id));) {
		int fd = open_by_id(BPF_MAP_GET_FD_BY_ID, id);
		struct bpf_map_info info;

		if (fd < 0 || info_of(fd, &info))
			continue;
		if (!strcmp(info.name, "tarsier_table"))
			bytes = info.value_size;
		if (!strcmp(info.name, "tables"))
			outer = fd;
		else
			close(fd);
	}
	if (!bytes || outer < 0)
		exit(1);
	int table = empty_table(bytes);

	if (table < 0)
		exit(1);
	count(access_slot(BPF_MAP_UPDATE_ELEM, outer, &table));
}

static void detach(void)
{
	for (__u32 id = 0; (id = next(BPF_LINK_GET_NEXT_ID, id));) {
		union bpf_attr attr = { .link_detach = { .link_fd = open_by_id(
								 BPF_LINK_GET_FD_BY_ID, id) } };

		count(bpf(BPF_LINK_DETACH, &attr));
		close(attr.link_detach.link_fd);
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "zero"))
		zero(argv[2], strtoul(argv[3], NULL, 10));
	else if (argc == 4 && !strcmp(argv[1], "flip"))
		flip(argv[2], strtoul(argv[3], NULL, 10));
	else if (argc == 2 && !strcmp(argv[1], "tables"))
		replace_tables();
	else if (argc == 2 && !strcmp(argv[1], "detach"))
		detach();
	else
		return 2;
	printf("%u %u\n", changed, refused);
	return 0;
}
