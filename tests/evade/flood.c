/* SPDX-License-Identifier: Apache-2.0 */
/* More events than there is room for: what is lost must be counted against the rule. */
#include "evade.h"

#define UIDS 1000
#define UID_FIRST 200000

static void become(uid_t uid)
{
	/* The saved id stays that of root, to come back. */
	if (syscall(SYS_setresuid, uid, uid, 0))
		fail("setresuid: %s", strerror(errno));
}

static void call_often(void *count)
{
	select_calls();
	become(UID_FIRST);
	for (long i = 0; i < (long)count; i++)
		syscall(SYS_getppid);
}

/* Four processes of one user. */
static void flood_one_user(int count)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++)
		pids[i] = start(call_often, (void *)(long)(count / 4));
	for (int i = 0; i < 4; i++)
		await(pids[i]);
	made(count);
}

/* A range of sub-uids, as containers have: to a daemon that shares out by uid, 1,000 users. */
static void flood_many_users(int count)
{
	for (int i = 0; i < UIDS; i++) {
		select_calls();
		become(UID_FIRST + i);
		for (int j = 0; j < count / UIDS; j++) {
			syscall(SYS_getppid);
			made(1);
		}
		become(0);
		unselect_calls();
	}
}

const struct technique flood_techniques[] = {
	{ "flood-one-user", flood_one_user, 20000 },
	{ "flood-many-users", flood_many_users, 20000 },
	{ 0 },
};
