//! A front between a sender and a real server: TLS, and every kind of misbehaviour.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Time between two looks for bytes, in either direction, and for connections.
const LOOK: Duration = Duration::from_millis(2);

/// Looks for bytes before a connection is closed.
const LINGER: u32 = 100;

/// Behaviour of a front towards its clients.
#[derive(Clone)]
pub enum Manner {
    /// Passes everything on.
    Pass,
    /// Nobody listens.
    Refuse,
    /// Takes connections, and says nothing.
    Silence,
    /// Answers with these bytes and leaves.
    Say(Vec<u8>),
    /// Passes so many bytes of the server's answers, then leaves.
    Cut(usize),
    /// Passes on what comes from the client this much later.
    Slow(Duration),
}

/// Time at which TLS begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// With the first byte.
    AtOnce,
    /// After the first line of the server.
    AfterGreeting,
}

/// A port of loopback before the port of a server.
pub struct Front {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    begins: Tls,
    state: Mutex<(Manner, Option<Arc<ServerConfig>>, u16)>,
    /// Connections of earlier generations are closed.
    generation: AtomicU64,
    applied: AtomicU64,
    is_done: AtomicBool,
}

impl Front {
    /// Listens, and refuses nobody. `tls`: with this certificate.
    pub fn new(begins: Tls, tls: Option<Arc<ServerConfig>>) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            begins,
            state: Mutex::new((Manner::Pass, tls, 0)),
            generation: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            is_done: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || listen(&theirs, listener, port));
        Front {
            port,
            shared,
            thread: Some(thread),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Passes on to the server at this port.
    pub fn leads_to(&self, port: u16) {
        self.change(|state| state.2 = port);
    }

    pub fn set(&self, manner: Manner) {
        self.change(|state| state.0 = manner);
    }

    pub fn set_tls(&self, tls: Option<Arc<ServerConfig>>) {
        self.change(|state| state.1 = tls);
    }

    /// Changes the manner, ends all connections, and waits until that has been done.
    fn change(&self, change: impl FnOnce(&mut (Manner, Option<Arc<ServerConfig>>, u16))) {
        change(&mut self.shared.state.lock().expect("the state"));
        let generation = self.shared.generation.fetch_add(1, Ordering::SeqCst) + 1;
        super::await_that("the front has changed", || {
            self.shared.applied.load(Ordering::SeqCst) >= generation
        });
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.shared.is_done.store(true, Ordering::SeqCst);
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen(shared: &Arc<Shared>, listener: TcpListener, port: u16) {
    let mut listener = Some(listener);
    while !shared.is_done.load(Ordering::SeqCst) {
        let generation = shared.generation.load(Ordering::SeqCst);
        let manner = shared.state.lock().expect("the state").0.clone();
        match manner {
            Manner::Refuse => listener = None,
            _ if listener.is_none() => listener = TcpListener::bind(("127.0.0.1", port)).ok(),
            _ => {}
        }
        if listener.is_some() || matches!(manner, Manner::Refuse) {
            shared.applied.store(generation, Ordering::SeqCst);
        }
        let accepted = listener.as_ref().and_then(|listener| {
            listener.set_nonblocking(true).expect("a mode");
            listener.accept().ok()
        });
        match accepted {
            Some((client, _)) => {
                let theirs = Arc::clone(shared);
                std::thread::spawn(move || {
                    // An error is the end of a connection.
                    let _ = serve(&theirs, client, generation);
                });
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

fn serve(shared: &Shared, mut client: TcpStream, generation: u64) -> io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_nodelay(true)?;
    let (manner, tls, port) = shared.state.lock().expect("the state").clone();
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.set_nodelay(true)?;
    server.set_read_timeout(Some(LOOK))?;
    if shared.begins == Tls::AfterGreeting {
        match &manner {
            Manner::Say(bytes) => return client.write_all(bytes),
            Manner::Silence => return idle(shared, generation),
            _ => greet(&mut server, &mut client)?,
        }
    }
    client.set_read_timeout(Some(LOOK))?;
    let mut client: Box<dyn Both> = match tls {
        Some(config) => {
            let connection = ServerConnection::new(config).map_err(io::Error::other)?;
            Box::new(StreamOwned::new(connection, client))
        }
        None => Box::new(client),
    };
    match manner {
        Manner::Silence => idle(shared, generation),
        manner => pump(shared, generation, &mut *client, &mut server, &manner),
    }
}

fn is_current(shared: &Shared, generation: u64) -> bool {
    shared.generation.load(Ordering::SeqCst) == generation
}

fn idle(shared: &Shared, generation: u64) -> io::Result<()> {
    while is_current(shared, generation) {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Passes the first line of the server on.
fn greet(server: &mut TcpStream, client: &mut TcpStream) -> io::Result<()> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        let read = server.read(&mut byte).map(|count| byte[..count].to_vec());
        match some(read)? {
            Some(read) if read.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
            read => line.extend(read.unwrap_or_default()),
        }
    }
    client.write_all(&line)
}

/// Bytes that were read; `None` if there is nothing now.
fn some(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn pump(
    shared: &Shared,
    generation: u64,
    client: &mut dyn Both,
    server: &mut TcpStream,
    manner: &Manner,
) -> io::Result<()> {
    let mut left = match manner {
        Manner::Cut(bytes) => *bytes,
        _ => usize::MAX,
    };
    while is_current(shared, generation) {
        if let Some(bytes) = take(client)? {
            match manner {
                Manner::Say(answer) => {
                    client.write_all(answer)?;
                    client.flush()?;
                    // What is unread when a connection is closed would reset it, and take the answer along.
                    for _ in 0..LINGER {
                        take(client)?;
                    }
                    return Ok(());
                }
                Manner::Slow(wait) => std::thread::sleep(*wait),
                _ => {}
            }
            server.write_all(&bytes)?;
        }
        if let Some(bytes) = take(server)? {
            let passed = bytes.len().min(left);
            client.write_all(&bytes[..passed])?;
            client.flush()?;
            left -= passed;
            if left == 0 {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Some bytes; `None` if there are none now, an error at the end.
fn take(from: &mut (impl Read + ?Sized)) -> io::Result<Option<Vec<u8>>> {
    let mut block = vec![0; 64 << 10];
    match some(from.read(&mut block).map(|count| block[..count].to_vec()))? {
        Some(bytes) if bytes.is_empty() => Err(ErrorKind::UnexpectedEof.into()),
        bytes => Ok(bytes),
    }
}
