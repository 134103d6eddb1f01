//! The brokers: which of them leads a partition of the topic.

use super::connection::Connection;
use super::error::{self, code};
use super::login::Login;
use super::wire::{api, Garbage, In, Out};
use crate::config::Config;
use crate::net::Connector;
use crate::sink::secret;

/// Access to the topic: its brokers, and the login.
pub(super) struct Cluster {
    pub(super) connector: Connector,
    /// `HOST:PORT` of brokers that are asked first.
    pub(super) servers: Vec<String>,
    pub(super) login: Login,
    pub(super) topic: String,
}

/// A broker's description of the topic.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Topic {
    /// Number of partitions.
    pub(super) partitions: u32,
    /// `HOST:PORT` of the leader of the partition that was asked for, if it is known.
    leader: Option<String>,
}

impl Cluster {
    /// The cluster of a configuration. Connects to nothing.
    pub(super) fn new(config: &Config) -> Result<Cluster, String> {
        Ok(Cluster {
            connector: Connector::new(config, config.tls)?,
            servers: config.server.clone(),
            login: Login {
                auth: config.auth,
                user: config.user.clone(),
                password: secret(config)?,
            },
            topic: config.topic.clone(),
        })
    }

    fn connect(&self, server: &str) -> Result<Connection, String> {
        let mut connection = Connection::open(&self.connector, server)?;
        self.login.prove(&mut connection)?;
        Ok(connection)
    }

    /// Number of partitions of the topic, as the first server says that answers.
    pub(super) fn partitions(&self) -> Result<u32, String> {
        self.topic(None).map(|(topic, _)| topic.partitions)
    }

    /// A connection to the leader of a partition.
    pub(super) fn leader(&self, partition: u32) -> Result<Connection, String> {
        let (topic, server) = self.topic(Some(partition))?;
        if partition >= topic.partitions {
            return Err(format!(
                "{server}: topic {:?} has {} partitions, but partition {partition} is wanted; \
                 set a smaller `partition`, or add partitions",
                self.topic, topic.partitions
            ));
        }

        let Some(leader) = topic.leader else {
            return Err(format!(
                "{server}: partition {partition} of topic {:?} has no leader now; is its broker running?",
                self.topic
            ));
        };

        self.connect(&leader).map_err(|error| {
            format!(
                "{error} ({server} says that {leader} leads partition {partition}: the brokers' \
                 advertised.listeners have to be addresses that this host reaches)"
            )
        })
    }

    /// Description of the topic by the first server that answers, and that server.
    fn topic(&self, partition: Option<u32>) -> Result<(Topic, &str), String> {
        let mut errors = Vec::new();
        for server in &self.servers {
            match self.topic_of(server, partition) {
                Ok(topic) => return Ok((topic, server)),
                Err(error) => errors.push(error),
            }
        }
        Err(errors.join("; "))
    }

    fn topic_of(&self, server: &str, partition: Option<u32>) -> Result<Topic, String> {
        let mut connection = self.connect(server)?;
        let mut body = Out::default();
        body.i32(1).text(&self.topic).i8(0);
        let answer = connection.ask(api::METADATA, &body.0)?;
        let (error, topic) =
            read(&answer, partition).map_err(|garbage| connection.named(garbage))?;

        match error {
            0 => Ok(topic),
            code::UNKNOWN_TOPIC => Err(connection.named(format!(
                "there is no topic {:?}, or {:?} may not see it; create it, or give the user Describe",
                self.topic, self.login.user
            ))),
            error => Err(connection.named(format!("topic {:?}: {}", self.topic, error::text(error)))),
        }
    }
}

/// Reads the answer to a metadata request: the topic's error, and the topic.
pub(super) fn read(answer: &[u8], partition: Option<u32>) -> Result<(i16, Topic), Garbage> {
    let mut answer = In(answer);
    answer.i32()?;
    let mut brokers = Vec::new();
    for _ in 0..answer.count()? {
        let (id, host, port) = (answer.i32()?, answer.text()?, answer.i32()?);
        answer.text()?;
        brokers.push((id, format!("{host}:{port}")));
    }

    answer.text()?;
    answer.i32()?;
    if answer.count()? != 1 {
        return Err(Garbage);
    }

    let error = answer.i16()?;
    answer.text()?;
    answer.skip(1)?;
    let count = answer.count()?;
    let mut leader = None;
    for _ in 0..count {
        let (_, index, leads) = (answer.i16()?, answer.i32()?, answer.i32()?);
        for _ in 0..3 {
            let replicas = answer.count()?;
            answer.skip(replicas.checked_mul(4).ok_or(Garbage)?)?;
        }
        if partition.is_some_and(|wanted| i64::from(wanted) == i64::from(index)) {
            let broker = brokers.iter().find(|(id, _)| *id == leads);
            leader = broker.map(|(_, address)| address.clone());
        }
    }

    let topic = Topic {
        partitions: count as u32,
        leader,
    };
    Ok((error, topic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_are_cut_or_garbage_are_refused() {
        let mut answer = Out::default();
        answer.i32(0).i32(1).i32(4).text("b").i32(9092).i16(-1);
        answer.text("id").i32(4).i32(1).i16(0).text("audit").i8(0);
        // One partition: its error, index and leader; one replica, in sync; none offline.
        answer.i32(1).i16(0).i32(2).i32(4);
        answer.i32(1).i32(4).i32(0).i32(0);
        let expected = Topic {
            partitions: 1,
            leader: Some("b:9092".into()),
        };
        assert_eq!(read(&answer.0, Some(2)), Ok((0, expected)));
        for length in 0..answer.0.len() {
            assert_eq!(read(&answer.0[..length], None), Err(Garbage), "{length}");
        }
    }
}
