// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Shows entries of a directory in the kernel's cache, so that user space can find the table that they are in. */
#define TARSIER_WITHOUT_CASTS
#include "base.h"
#include "dcache.h"
#include "files.h"
#include "names.h"
#include "shared.h"
#include "steps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct dcache_samples samples SEC(".bss.samples");
__u64 text[NAME_MAX_LEN / 8 + 1] SEC(".bss.text");

/* The most entries of a directory that are looked at. */
#define ENTRIES_MAX 4096

struct sampling {
	__u64 dir;
	__u64 next;
	__u64 end;
};

/* The hash of the name in `text`. */
struct hashing {
	struct name_hash hash;
	__u32 len;
	__u32 computed;
};

/* Adds the next word of the name. */
STEP(hash_step, struct hashing *of, NAME_MAX_LEN / 8 + 1)
{
	__u64 word = text[i & (NAME_MAX_LEN / 8 - 1)];

	if (of->len / 8 == i) {
		of->computed = name_hash_end(&of->hash, name_word(word, of->len % 8));
		return 1;
	}
	name_hash_add(&of->hash, word);
	return 0;
}

/* Adds the next entry of the directory. */
STEP(sample_step, struct sampling *at, ENTRIES_MAX)
{
	struct hashing of = {};
	struct dcache_sample *sample;
	struct dentry *entry = 0;
	__u64 node = at->next;
	__u64 place = samples.count;

	if (!node || node == at->end || place >= DCACHE_SAMPLES)
		return 1;
	at->next = (__u64)READ((struct hlist_node *)node, next);
	entry = entry_listed(node);
	of.len = READ(entry, d_name.len);
	if (IS_UNHASHED(entry) || of.len >= NAME_MAX_LEN)
		return 0;
	__builtin_memset(text, 0, sizeof(text));
	AT_MOST(of.len, NAME_MAX_LEN - 1);
	if (bpf_probe_read_kernel(text, of.len, READ(entry, d_name.name)))
		return 0;
	name_hash_begin(&of.hash, at->dir);
	REPEAT(hash_step, &of);
	AT_MOST(place, DCACHE_SAMPLES - 1);
	sample = &samples.sample[place];
	sample->pprev = (__u64)READ(entry, d_hash.pprev);
	sample->hash = READ(entry, d_name.hash);
	sample->computed = of.computed;
	samples.count++;
	return 0;
}

/* Adds the entries of the directory that the descriptor ctx[0] stands for. */
SEC("raw_tp")
int sample_directory(__u64 *ctx)
{
	struct file *file = file_of(bpf_get_current_task_btf(), ctx[0]);
	struct sampling at = {};
	struct dentry *dir;

	if (!ENTRIES_ARE_LISTED || !DCACHE_IS_KNOWN || !file)
		return 1;
	dir = READ(file, f_path.dentry);
	if (READ(dir, d_flags) & own_hash_flag())
		return 0;
	at.dir = (__u64)dir;
	at.next = first_listed(at.dir);
	at.end = end_listed(at.dir);
	REPEAT(sample_step, &at);
	return 0;
}
