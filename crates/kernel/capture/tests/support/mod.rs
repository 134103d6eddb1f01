//! Shared by the tests on a live kernel: tables, groups and memory as the programs meet them.

use libbpf_rs::libbpf_sys::{bpf_map_create_opts, BPF_F_MMAPABLE};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use plan::tables::{Row, ROWS};
use plan::Shape;
use zerocopy::IntoBytes;

/// A map with these rows, created as the engine does it.
pub(crate) fn table(rows: &[Row]) -> MapHandle {
    let options = bpf_map_create_opts {
        sz: size_of::<bpf_map_create_opts>() as u64,
        map_flags: BPF_F_MMAPABLE,
        ..Default::default()
    };
    let bytes = ROWS * size_of::<Row>();
    let map = MapHandle::create(
        MapType::Array,
        Some("test_table"),
        4,
        bytes as u32,
        1,
        &options,
    )
    .expect("a map");
    let mut value = vec![0; bytes];
    for (row, place) in rows.iter().zip(value.chunks_mut(size_of::<Row>())) {
        place.copy_from_slice([row.a, row.b].as_bytes());
    }
    map.update(&[0; 4], &value, MapFlags::ANY)
        .expect("rows are written");
    map
}

/// Sets the supplementary groups of the calling thread only.
pub(crate) fn set_groups(groups: &[u32]) {
    // SAFETY: the kernel reads `groups.len()` words from the slice.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    assert_eq!(result, 0, "setgroups: {}", std::io::Error::last_os_error());
}

/// Memory that a 32-bit call could point to.
pub(crate) struct LowMemory(*mut u8);

impl LowMemory {
    pub(crate) fn new() -> LowMemory {
        // SAFETY: a new anonymous mapping below 2 GiB; it stays until the process ends.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        LowMemory(start.cast())
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) -> u64 {
        assert!(offset + bytes.len() <= 4096);
        // SAFETY: inside the page that `new` mapped, which nothing else refers to.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(offset), bytes.len());
            self.0.add(offset) as u64
        }
    }

    /// Stores a `struct open_how` with these flags. Returns its address.
    pub(crate) fn put_how(&mut self, flags: u64) -> u64 {
        self.put(0, &flags.to_ne_bytes())
    }

    /// Stores a socket address of this family, or none, and returns the arguments that describe it in this shape:
    /// the address (of the `struct msghdr`), and the length (or its address).
    pub(crate) fn put_sockaddr(
        &mut self,
        family: Option<u32>,
        shape: &Shape,
        compat: bool,
    ) -> (u64, u64) {
        let Some(family) = family else {
            return (0, 0);
        };
        let mut bytes = (family as u16).to_ne_bytes().to_vec();
        // A path, in a UNIX socket's address.
        bytes.push(b'x');
        let address = self.put(512, &bytes);
        let len = 16u32;
        if shape.msghdr {
            let header = if compat {
                [(address as u32).to_ne_bytes(), len.to_ne_bytes()].concat()
            } else {
                [address.to_ne_bytes(), u64::from(len).to_ne_bytes()].concat()
            };
            return (self.put(1024, &header), 0);
        }
        if shape.len_is_pointer {
            return (address, self.put(2048, &len.to_ne_bytes()));
        }
        (address, len.into())
    }
}
