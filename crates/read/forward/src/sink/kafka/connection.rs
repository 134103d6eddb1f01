//! One connection to a broker: requests and their answers, in order.

use crate::net::{closed, Connector, Stream};

use super::wire;

/// A connection, and the number of its last request.
pub(super) struct Connection {
    server: String,
    stream: Stream,
    correlation: i32,
}

impl Connection {
    /// Connects to `HOST:PORT`; nobody has said who they are yet.
    pub(super) fn open(connector: &Connector, server: &str) -> Result<Connection, String> {
        let stream = connector
            .connect(server)
            .map_err(|error| error.to_string())?;
        Ok(Connection {
            server: server.to_owned(),
            stream,
            correlation: 0,
        })
    }

    /// Sends a request and waits for its answer. After an error the connection is of no use.
    pub(super) fn ask(&mut self, api: (i16, i16), body: &[u8]) -> Result<Vec<u8>, String> {
        self.correlation = self.correlation.wrapping_add(1);
        self.stream.begin();
        wire::ask(&mut self.stream, api, self.correlation, body)
            .map_err(|error| self.named(closed(error)))
    }

    /// `error` with the name of the server.
    pub(super) fn named(&self, error: impl std::fmt::Display) -> String {
        format!("{}: {error}", self.server)
    }
}
