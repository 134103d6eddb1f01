//! EXECVE: the only record that may take several lines.

use crate::put;

/// The most bytes of arguments in one EXECVE line: MAX_EXECVE_AUDIT_LEN.
pub const EXECVE_RECORD_MAX: usize = 7500;

/// Space that the kernel reserves for the text around an argument: its `char abuf[96]`.
const LABEL_ROOM: usize = 96;
/// A new line begins if less space than this is left.
const LINE_ROOM_MIN: usize = LABEL_ROOM + 8;

/// EXECVE (1309): the arguments of the new image.
///
/// Written by [`crate::EventWriter::execve`], because long arguments take more than one line. Lines are split exactly
/// as audit_log_execve_info() of kernel/auditsc.c (4.8 and later) does: arguments pass through a buffer of 7500 bytes;
/// an argument that fills the buffer is always written in hex; one that does not fit into the rest of its line becomes
/// ` aN_len=LEN aN[0]=… aN[1]=…`.
///
/// If arguments are missing, `argc` is still their number, and ` cut_bytes=N` ends the record: that many bytes of them.
/// The kernel's record has no such field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execve<'a> {
    /// The arguments that are known, each ended by NUL, which the last one may lack.
    pub args: &'a [u8],
    /// Number of all arguments; `None`: that of `args`.
    pub argc: Option<u64>,
    /// Number of bytes of arguments that are missing.
    pub cut_bytes: u64,
}

impl<'a> Execve<'a> {
    /// The record of all arguments: see [`Execve::args`].
    pub fn whole(args: &'a [u8]) -> Execve<'a> {
        Execve {
            args,
            argc: None,
            cut_bytes: 0,
        }
    }

    /// Number of arguments, at least 1: since Linux 5.18, execve adds an empty argument if there is none.
    pub fn argc(&self) -> u64 {
        self.argc.unwrap_or_else(|| self.iter().count() as u64)
    }

    /// The arguments in order, as far as they are known.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let args = self.args.strip_suffix(b"\0").unwrap_or(self.args);
        let nothing = self.args.is_empty() && self.cut_bytes > 0;
        args.split(|&byte| byte == 0).skip(usize::from(nothing))
    }

    /// Writes the record. `next_line(out)` must end the current line and start another one of the same event.
    pub(crate) fn write(&self, out: &mut Vec<u8>, mut next_line: impl FnMut(&mut Vec<u8>)) {
        put::text(out, "argc=");
        put::decimal(out, self.argc());
        let mut room = EXECVE_RECORD_MAX;
        for (number, arg) in self.iter().enumerate() {
            let mut window = Window::new(number, arg);
            while !window.is_done() {
                window.fill();
                if room < LINE_ROOM_MIN {
                    room = EXECVE_RECORD_MAX;
                    next_line(out);
                }
                room -= window.write_piece(out, room);
            }
        }

        if self.cut_bytes > 0 {
            put::text(out, " cut_bytes=");
            put::decimal(out, self.cut_bytes);
        }
    }
}

/// One argument on its way through the kernel's buffer.
struct Window<'a> {
    number: usize,
    arg: &'a [u8],
    /// Bytes of `arg` already written.
    written: usize,
    /// Bytes of `arg` that have entered the buffer.
    read: usize,
    /// Whether the end of the argument has not entered the buffer yet.
    more: bool,
    hex: bool,
    /// `aN_len`: the number of characters of all pieces together (only an estimate if the argument fills the buffer).
    shown_len: usize,
    /// The number of characters that the bytes in the buffer take, quotes included.
    text_len: usize,
    pieces: usize,
}

impl<'a> Window<'a> {
    fn new(number: usize, arg: &'a [u8]) -> Window<'a> {
        let shown_len = arg.len();
        Window {
            number,
            arg,
            written: 0,
            read: 0,
            more: true,
            hex: false,
            shown_len,
            text_len: 0,
            pieces: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.written == self.read && !self.more
    }

    /// Reads more of the argument into the buffer, unless its end is already there.
    fn fill(&mut self) {
        if !self.more {
            return;
        }

        let free = EXECVE_RECORD_MAX - (self.read - self.written);
        let fresh = &self.arg[self.read..][..free.min(self.arg.len() - self.read)];
        if fresh.len() == free {
            self.hex = true;
            self.shown_len *= 2;
        } else {
            self.more = false;
            self.hex |= put::needs_hex(fresh);
            if self.shown_len < EXECVE_RECORD_MAX {
                self.shown_len = if self.hex {
                    fresh.len() * 2
                } else {
                    fresh.len()
                };
            }
        }

        self.read += fresh.len();
        let held = self.read - self.written;
        self.text_len = if self.hex { held * 2 } else { held + 2 };
    }

    /// Writes the label and as much of the argument as fits into `room` characters; returns the number written.
    fn write_piece(&mut self, out: &mut Vec<u8>, room: usize) -> usize {
        let start = out.len();
        let in_pieces = self.more || self.pieces > 0 || self.text_len + LABEL_ROOM > room;
        self.write_label(out, in_pieces);
        let room = room - (out.len() - start);
        let held = &self.arg[self.written..self.read];
        let fits = self.text_len <= room;
        let piece = match (fits, self.hex) {
            (true, _) => held,
            (false, true) => &held[..room / 2],
            (false, false) => &held[..room - 2],
        };

        if self.hex {
            put::hex_bytes(out, piece);
            self.text_len -= piece.len() * 2;
        } else {
            put::quoted(out, piece);
            self.text_len -= piece.len();
        }

        self.written += piece.len();
        out.len() - start
    }

    fn write_label(&mut self, out: &mut Vec<u8>, in_pieces: bool) {
        let number = self.number as u64;
        if in_pieces && self.pieces == 0 {
            put::text(out, " a");
            put::decimal(out, number);
            put::text(out, "_len=");
            put::decimal(out, self.shown_len as u64);
        }

        put::text(out, " a");
        put::decimal(out, number);
        if in_pieces {
            out.push(b'[');
            put::decimal(out, self.pieces as u64);
            out.push(b']');
            self.pieces += 1;
        }

        out.push(b'=');
    }
}
