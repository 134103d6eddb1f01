/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes /dev/dm-0, which passes all to DEVICE, each write and each flush MS milliseconds late (the kernel's dm-delay). Reads are
 * 50 ms late: if all delays were shorter, dm-delay would wait in a loop, on the only processor.
 *
 *   slow-disk make DEVICE MS
 *   slow-disk remove
 */
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NAME "slow"
#define READ_MS 50

static int fail(const char *what)
{
	fprintf(stderr, "slow-disk: ");
	perror(what);
	exit(1);
}

/* A request about the device, with one target in its table if `table` is not NULL. */
static void request(int control, unsigned long number, unsigned long long sectors,
		    const char *table)
{
	static char bytes[4096] __attribute__((aligned(8)));
	struct dm_ioctl *head = (struct dm_ioctl *)bytes;

	memset(bytes, 0, sizeof(bytes));
	head->version[0] = DM_VERSION_MAJOR;
	head->data_size = sizeof(bytes);
	head->data_start = sizeof(*head);
	strcpy(head->name, NAME);
	if (table) {
		struct dm_target_spec *target = (struct dm_target_spec *)(bytes + sizeof(*head));

		head->target_count = 1;
		target->length = sectors;
		strcpy(target->target_type, "delay");
		strcpy((char *)(target + 1), table);
	}
	if (ioctl(control, number, bytes))
		fail("/dev/mapper/control");
}

int main(int argc, char **argv)
{
	unsigned long long bytes;
	char table[512];
	int control = open("/dev/mapper/control", O_RDWR), device;

	if (control < 0)
		fail("/dev/mapper/control");
	if (argc == 2 && !strcmp(argv[1], "remove")) {
		request(control, DM_DEV_REMOVE, 0, NULL);
		return 0;
	}
	if (argc != 4 || strcmp(argv[1], "make")) {
		fprintf(stderr, "usage: slow-disk make DEVICE MS | slow-disk remove\n");
		return 2;
	}
	device = open(argv[2], O_RDONLY);
	if (device < 0 || ioctl(device, BLKGETSIZE64, &bytes))
		fail(argv[2]);
	close(device);
	/* Device, first sector and delay: of reads, writes and flushes. */
	snprintf(table, sizeof(table), "%s 0 %d %s 0 %d %s 0 %d", argv[2], READ_MS, argv[2],
		 atoi(argv[3]), argv[2], atoi(argv[3]));
	request(control, DM_DEV_CREATE, 0, NULL);
	request(control, DM_TABLE_LOAD, bytes / 512, table);
	/* Without DM_SUSPEND_FLAG: resumes the device, so that the table becomes active. */
	request(control, DM_DEV_SUSPEND, 0, NULL);
	return 0;
}
