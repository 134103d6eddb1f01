//! The last login of each user, as aulastlog finds it.

use crate::event::Event;
use crate::format::cursor::Cursor;
use crate::format::on_demand::OnDemand;
use crate::{time, Dialect};

const USER_LOGIN: i32 = 1112;

/// A user of this machine and the last login.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastLogin {
    /// Name of the user.
    pub name: Vec<u8>,
    /// Id of the user.
    pub uid: u32,
    /// Second of the last login, or 0.
    pub sec: u64,
    /// Host from which the user logged in.
    pub host: Option<Vec<u8>>,
    /// Terminal.
    pub terminal: Option<Vec<u8>>,
}

/// The last logins of all users.
pub struct Logins {
    users: Vec<LastLogin>,
    dialect: Dialect,
}

impl Logins {
    /// Before the first login. `users` are names and ids in the order of the report.
    pub fn new(users: Vec<(Vec<u8>, u32)>, dialect: Dialect) -> Logins {
        let users = users.into_iter().map(|(name, uid)| LastLogin {
            name,
            uid,
            ..LastLogin::default()
        });
        Logins {
            users: users.collect(),
            dialect,
        }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        if !event.has_kind(USER_LOGIN, USER_LOGIN) {
            return;
        }
        let records: Vec<_> = event
            .records()
            .map(|record| OnDemand::new(record, self.dialect))
            .collect();
        let is_login = |(record, fields): &(crate::Record<'_>, &OnDemand<'_>)| {
            record.kind == USER_LOGIN && fields.get(b"res") == Some(b"success")
        };
        let Some(at) = event
            .records()
            .zip(&records)
            .position(|pair| is_login(&pair))
        else {
            return;
        };
        let mut cursor = Cursor::new(&records, event.key().sec, self.dialect);
        cursor.go_to_record(at);
        if cursor.find(b"auid").is_none() {
            return;
        }
        let uid = cursor.number().unwrap_or(-1) as u32;
        let Some(user) = self.users.iter_mut().find(|user| user.uid == uid) else {
            return;
        };
        user.sec = event.key().sec;
        if let Some(host) = cursor.find(b"hostname") {
            user.host = Some(host.to_vec());
        }
        if let Some(terminal) = cursor.find(b"terminal") {
            user.terminal = Some(terminal.to_vec());
        }
    }

    /// Appends the report.
    pub fn write(&self, out: &mut Vec<u8>) {
        let is_own = self.dialect == Dialect::Own;
        out.extend_from_slice(b"Username         Port         From                       Latest\n");
        for user in &self.users {
            let columns = [
                (&user.name[..], 16, usize::MAX),
                (user.terminal.as_deref().unwrap_or_default(), 12, 12),
                (user.host.as_deref().unwrap_or_default(), 26, 26),
            ];
            for (text, least, most) in columns {
                let most = if is_own { usize::MAX } else { most };
                let text = &text[..text.len().min(most)];
                out.extend_from_slice(text);
                let blanks = usize::saturating_sub(least, text.len());
                out.resize(out.len() + blanks + 1, b' ');
            }
            match user.sec {
                0 => out.extend_from_slice(b"**Never logged in**"),
                sec => time::write_date_time(sec, out),
            }
            out.push(b'\n');
        }
    }
}
