/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acts32: makes the system calls that its command line names, as a 32-bit program on arm64, without a C library.
 *
 * usage: acts32 NUMBER [ARG…] [, NUMBER [ARG…]]…
 *
 * NUMBER is a call's number in arch/arm64/tools/syscall_32.tbl. An ARG is a number (`12`, `0x42`, `-100`) or one
 * of these, which pass an address: `room`, zeroed memory; `hex:0200`, these bytes followed by zeros; `argv`, the
 * array of all words that follow, which are not arguments of the call themselves; other text, that text. A line on
 * standard error per call has its number and its error, or 0.
 */
#define WRITE 4
#define EXIT_GROUP 248
/* Results from -ERRORS to -1 are errors. */
#define ERRORS 4095UL
#define ARGS_MAX 6
#define ROOM 512

static char room[ROOM], bytes[ROOM];
static char *no_words[1];

static long call(long nr, const long *args)
{
	register long r7 __asm__("r7") = nr;
	register long r0 __asm__("r0") = args[0];
	register long r1 __asm__("r1") = args[1];
	register long r2 __asm__("r2") = args[2];
	register long r3 __asm__("r3") = args[3];
	register long r4 __asm__("r4") = args[4];
	register long r5 __asm__("r5") = args[5];

	__asm__ volatile("svc 0"
			 : "+r"(r0)
			 : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5)
			 : "memory");
	return r0;
}

static int is_same(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	return *one == *other;
}

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return ~0u;
}

/* Whether the text is a number, which is then stored in `value`. */
static int is_number(const char *text, long *value)
{
	int is_negative = *text == '-';
	unsigned int base = 10;

	text += is_negative;
	if (text[0] == '0' && text[1]) {
		base = text[1] == 'x' ? 16 : 8;
		text += base == 16 ? 2 : 1;
	}
	if (!*text)
		return 0;
	for (*value = 0; *text; text++) {
		if (digit(*text) >= base)
			return 0;
		*value = *value * (long)base + (long)digit(*text);
	}
	if (is_negative)
		*value = -*value;
	return 1;
}

static long bytes_of(const char *hex)
{
	int i = 0;

	while (hex[0] && hex[1] && i < ROOM) {
		bytes[i++] = (char)(digit(hex[0]) << 4 | digit(hex[1]));
		hex += 2;
	}
	while (i < ROOM)
		bytes[i++] = 0;
	return (long)bytes;
}

static long value_of(const char *word)
{
	long value;

	if (is_number(word, &value))
		return value;
	if (word[0] == 'h' && word[1] == 'e' && word[2] == 'x' && word[3] == ':')
		return bytes_of(word + 4);
	return (long)(is_same(word, "room") ? room : word);
}

/* Prints the call's number and its error, or 0: other results differ from run to run. */
static void tell(long nr, long result)
{
	char line[32];
	long error = (unsigned long)result >= -ERRORS ? result : 0;
	long args[ARGS_MAX] = { 2 }, numbers[2] = { nr, error };
	int length = 0;

	for (int i = 0; i < 2; i++) {
		unsigned long value = numbers[i] < 0 ? -numbers[i] : numbers[i];
		unsigned long unit = 1;

		if (numbers[i] < 0)
			line[length++] = '-';
		while (value / unit >= 10)
			unit *= 10;
		for (; unit; unit /= 10)
			line[length++] = (char)('0' + value / unit % 10);
		line[length++] = i ? '\n' : ' ';
	}
	args[1] = (long)line;
	args[2] = length;
	call(WRITE, args);
}

/* Makes the call that begins at `word`; returns the word after it. */
static char **run(char **word)
{
	long args[ARGS_MAX] = { 0 }, nr = value_of(*word++);
	int count = 0;

	while (*word && !is_same(*word, ",")) {
		if (is_same(*word, "argv")) {
			args[count] = (long)(word + 1);
			word = no_words;
			break;
		}
		if (count == ARGS_MAX)
			break;
		args[count++] = value_of(*word++);
	}
	tell(nr, call(nr, args));
	return *word ? word + 1 : word;
}

/* Runs all calls. The kernel leaves on the stack: count, words, NULL. */
__attribute__((used)) static void begin(long *stack)
{
	char **word = (char **)(stack + 2);
	long none[ARGS_MAX] = { 0 };

	while (*word)
		word = run(word);
	call(EXIT_GROUP, none);
}

__attribute__((naked)) void _start(void)
{
	__asm__ volatile("mov r0, sp\n\tb begin");
}
