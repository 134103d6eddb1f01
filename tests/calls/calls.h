/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>

/* Makes the memory that arguments point to, below 4 GiB, where 32-bit calls reach it. */
void arena_make(void);
/* Makes the sockets below tree, of which two listen and receive while this process runs. */
void sockets_prepare(void);
/*
 * Sets the arguments that the words of a line stand for:
 *
 *   NUMBER            itself
 *   =TEXT             a path or other text
 *   file, dir         a descriptor of tree/file, or of tree/dir
 *   tree              a descriptor of tree
 *   stream, datagram  a socket of AF_UNIX; inet one of AF_INET
 *   @TEXT             an address of AF_UNIX with this path; @inet one of AF_INET
 *   addr              the length of such an address
 *   msg:TEXT          a struct msghdr with that address; mmsg:TEXT, two struct mmsghdr
 *   in:A,B,…          words of the size of a register, which are arguments as here
 *   buf               memory that is zero
 *   ten               a number in memory, of 4 bytes: 10
 *   argv              the arguments of a program
 */
void words_to_args(const char *words, long *args, bool is_32);
/*
 * Submits an operation of io_uring and waits for its end. The words are those of a submission queue entry: fd, addr, len,
 * off (the second address), flags, addr3.
 */
int ring_make(long operation, const long *words);

#endif
