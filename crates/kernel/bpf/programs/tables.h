/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Layout of the match tables, which crates/core/plan writes (plan::tables) and the
 * programs read. One array of 16-byte rows contains everything, so that a single
 * map update replaces the rule set.
 *
 *   row 0                  { generation, epoch of the names of workloads, labels and ancestors }
 *   row TABLE_TASK_LIST    struct table_call of the task list
 *   row TABLE_MARKS        { first row, slots - 1 } of the marks of path= and dir=
 *   row TABLE_EXECUTABLES  the same, of the marks of exe=
 *   row TABLE_MARK_FILTER  { first word, words - 1 } of the filter of the marks of path= and dir=:
 *                          a bit for each name and object with a mark
 *   row TABLE_MARK_KEY     two odd factors, chosen at random, of the hashes of all marks
 *   row TABLE_INDEX + i    i = arch * TABLE_CALLS + nr: struct table_call
 *   anywhere after         struct table_spec, pages, lookups, entries
 */
#ifndef TARSIER_TABLES_H
#define TARSIER_TABLES_H

#ifdef __bpf__
#include "vmlinux.h"
#else
#include <linux/types.h>
#endif

#define TABLE_ROWS 131072
#define TABLE_CALLS 2048
#define TABLE_ARCHES 3 /* 0: the native entry, 1: the 32-bit entry, 2: io_uring */
#define TABLE_INDEX 16
#define TABLE_TASK_LIST 1
#define TABLE_MARKS 2
#define TABLE_EXECUTABLES 3
#define TABLE_MARK_FILTER 4
#define TABLE_MARK_KEY 5

/* Bounds for the evaluation of one call. */
#define TABLE_PAGES_MAX 64
#define TABLE_LOOKUPS_MAX 64
#define TABLE_SEARCH_STEPS 13
#define TABLE_ENTRIES_MAX 256
#define TABLE_SUMMARY_ENTRIES_MAX 8192
#define TABLE_UNDECIDED_MAX TABLE_PAGES_MAX
#define TABLE_MARK_PROBES 4
#define TABLE_GATE_LATER 2147483648 /* the gate asks about the workload, which takes a work area */
#define TABLE_SPEC_ONLY_MARKED 2147483648 /* a call that succeeds needs a mark to be selected */
#define TABLE_MARK_PROOF_BIT 32 /* of the second word of a mark */
#define TABLE_MARK_KERNEL_BIT 33

struct table_row {
	__u64 a;
	__u64 b;
};

/* The only value of a table map, so that not every row needs a lookup. */
struct table {
	struct table_row row[TABLE_ROWS];
};

/* The entry for one pair of entry point and call number. */
struct table_call {
	__u32 pages; /* first row of the list of pages; 0: no rule watches the call */
	__u32 gate; /* first of the two rows of its struct gate, and TABLE_GATE_LATER; 0: none */
	/*
	 * Row of its struct table_spec, and TABLE_SPEC_ONLY_MARKED. In the next two rows is a struct gate
	 * on an id of the task: that of the rules which select calls that have reached nothing with a mark.
	 */
	__u32 spec;
	__u16 npages;
	__u16 list; /* number of the candidate list, for CANDIDATES parts */
};

struct gate_range {
	__u32 first;
	__u32 span; /* last - first */
};

/* No rule can select the call unless the masked fact is in one of two ranges, or the result in another. */
struct gate {
	__u32 fact; /* enum table_field, or GATE_OPEN */
	__u32 mask;
	struct gate_range range[2];
	struct gate_range results; /* as the call returns them */
};

#define GATE_OPEN 0 /* not a fact that gates ask about */

/* What to collect for a call. An argument of 0xff means none. */
struct table_spec {
	__u8 path[2]; /* arguments that are paths */
	__u8 dir[2]; /* arguments that are the directories which the paths are relative to */
	__u8 fd; /* argument that is a descriptor whose file is to be named */
	__u8 sockaddr; /* argument that is a struct sockaddr */
	__u8 sockaddr_len; /* argument that is the length of sockaddr, or points to it */
	__u8 fd_pair; /* argument that points to two descriptors */
	__u8 target; /* argument that is the process to describe: its pid or, see flags, a pidfd */
	__u8 how; /* argument that is a struct open_how */
	__u8 module; /* argument that is a module name */
	__u8 kind; /* enum table_kind */
	__u8 flags; /* enum table_spec_flags */
	__u8 open_flags; /* argument that contains open(2) flags */
	__u8 memory; /* argument that points to memory to copy as it is */
	__u8 memory_len; /* length of that memory, in bytes, at most 64 */
};

enum table_kind {
	KIND_PLAIN = 0,
	KIND_OPEN = 1, /* a successful result is a descriptor whose file is to be named */
	KIND_EXEC = 2, /* success is seen at sched_process_exec */
	KIND_FORK = 3, /* also returns 0 in the child, which did not make the call */
	KIND_EXIT = 4, /* does not return */
	KIND_CAPSET = 5,
	KIND_SOCKETCALL = 6,
	KIND_BPF = 7, /* bpf(2) */
	KIND_MODULE = 8, /* loads a module */
	KIND_MESSAGES = 9, /* sockaddr is the first of several struct mmsghdr */
	KIND_MOUNT = 10, /* mount(2) */
	KIND_FSCONFIG = 11, /* fsconfig(2) */
	KIND_RENAME = 12, /* path[0] names an entry that the call renames */
	KIND_LOST = 13, /* after the call, its names no longer tell what it reached */
};

enum table_spec_flags {
	SPEC_SOCKADDR_LEN_PTR = 1, /* sockaddr_len points to the length */
	SPEC_MSGHDR = 2, /* sockaddr is a struct msghdr */
	SPEC_REMOVES = 4, /* path[0] names an entry that the call removes */
	SPEC_SOCKADDR_OUT = 8, /* the kernel writes the address, on success only */
	SPEC_TARGET_PIDFD = 16, /* target is a descriptor */
	SPEC_TEXT_FIRST = 32, /* path[0] is the text of a symbolic link, which is not looked up */
	SPEC_ENTRY_FIRST =
		64, /* a symbolic link that is the last name of path[0] is not followed */
	SPEC_ENTRY_SECOND = 128, /* the same of path[1] */
};

/*
 * The list of pages has a row { page | labels << 32, summary } for each page. In
 * row `labels` is a mask of the page's rules whose events give labels that rules
 * ask about; 0: there are none. Only the summary of the first row counts; 0: there
 * is none. A summary is a page whose bits
 * stand for the pages of the list: only pages in its mask can have a match.
 *
 * A page, from its first row:
 *   { valid, never }      masks over the page's 64 rules
 *   { stage2, nlookups | rules << 32 }   rules: row of 64 __u32 rule numbers
 *   nlookups times:
 *     { field | kind << 32, absent }     absent: mask if the call lacks the field; of a
 *                                        workload: the rules that the programs can decide
 *                                        although they do not know it
 *     { first entry row | entries << 32, decides }     both: see LOOKUP_MARKS
 *
 * Marks (crates/core/plan/src/marks.rs) are in slots, rows of their own:
 *   { hash, number | 1 << TABLE_MARK_PROOF_BIT if an object with this mark proves its path
 *           | 1 << TABLE_MARK_KERNEL_BIT if it does so for the kernel's audit, too }
 *                          hash 0: the slot is empty
 * A mark is in the slot that the high half of its hash gives, modulo their number,
 * or in one of the next; there are none after an empty slot.
 */
#define PAGE_LOOKUPS 2

enum lookup_kind {
	/* entries {start, mask}, ascending, the first start 0: the mask is that of
	 * the last start that is not above the value */
	LOOKUP_RANGES = 0,
	/* entries {operand | bit_op << 32, mask of the rules with this test} */
	LOOKUP_BITS = 1,
	/* entries {value, mask}: rules that require the value to be among the ids */
	LOOKUP_ANY_OF = 2,
	/* entries {value, mask}: rules that require the value not to be among the ids */
	LOOKUP_NONE_OF = 3,
	/* entries {number << 1 | is above, mask}: rules that require one of these marks.
	 * The first entry, 0, has the mask of the rules that require none. A sure mark
	 * decides the rules in `decides`: they need no second stage. Among the rules in
	 * `absent`, the order of the objects of a call decides, so that a call with
	 * several must not match two of them. The last lookup of a page. */
	LOOKUP_MARKS = 4,
};

enum bit_op {
	BIT_ANY = 0, /* value & operand != 0 */
	BIT_ALL = 1, /* value & operand == operand */
	BIT_NONE = 2, /* value & operand == 0 */
};

enum table_field { /* in a gate, 0 is GATE_OPEN */
	FACT_PID,
	FACT_PPID,
	FACT_UID,
	FACT_EUID,
	FACT_SUID,
	FACT_FSUID,
	FACT_GID,
	FACT_EGID,
	FACT_SGID,
	FACT_FSGID,
	FACT_AUID,
	FACT_SES,
	FACT_PERS,
	FACT_EXIT,
	FACT_SUCCESS, /* 1 success, 2 failure: AUDITSC_SUCCESS, AUDITSC_FAILURE */
	FACT_A0,
	FACT_A1,
	FACT_A2,
	FACT_A3,
	FACT_EXE, /* two numbers of executables, see executable_numbers(); 0: no rule names it */
	FACT_ACCESS, /* AUDIT_PERM_* bits of the open flags */
	FACT_COMPARE, /* bit AUDIT_COMPARE_x: the two ids are equal */
	FACT_SADDR_FAM,
	FACT_SOCKET_NAME, /* whether the call is given the path of a UNIX socket: 0 no, 1 yes, 2 perhaps */
	FACT_UNIT, /* numbers of names (workloads.h); absent if the cgroup is not known */
	FACT_SLICE,
	FACT_CONTAINER,
	FACT_LABELS, /* bits (process_class.h); absent if they are not all known */
	FACT_ANCESTORS,
	FACT_MARKS, /* a set (struct marks); absent if not everything that was reached is known */
	FACTS,
};

#endif /* TARSIER_TABLES_H */
