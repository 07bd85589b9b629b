use crate::demo::children;
use crate::exec::Exec;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::input::Framing;
use crate::interrupt::Interrupt;
use crate::output::{Format, remark};
use crate::receiving::{Follow, Receiving, Store, tell_missing};
use crate::troubles::Troubles;
use serde_json::json;
use stayfast::{Cursors, Inbox, Settings};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How often a signal is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Receive records and store them, or give them to a command
///
/// Senders must stand in the list of authorized keys, which is read again whenever it changes; others get no answer.
///
/// Without --exec, records are stored in the table `stayfast_records` of the inbox's database, in the transaction that
/// moves the cursor of their stream: exactly once. --follow prints them as well, once they are stored.
///
/// With --exec, a command gets the records of one batch on its standard input, one process a batch, one batch at a
/// time. If it ends with exit code 0, they are STORED, and the sender lets them go. Otherwise the same batch is given to
/// it again, after a pause that grows from one second to a minute, while other streams go on. So it is at-least-once:
/// if this process is killed between the end of the command and the commit of the cursor, the command sees the batch
/// again, perhaps with more records behind. Take STAYFAST_SENDER, STAYFAST_STORE, STAYFAST_STREAM and the number as the
/// key of what it stores, and it is exactly once again. At a signal, the command that runs may end first (--grace).
///
/// A record that was damaged at its sender cannot come. It is remarked on here on standard error, its number is left out
/// of what is printed or given to the command, and in the table it has no body.
///
/// Records are written as lines; one that holds a line end comes as several. With --framed each record has its length
/// before it (4 B, big-endian), and may hold anything. The same goes for --follow.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  stayfast listen [::]:4711 --key hub.key --inbox hub.db
  stayfast listen [::]:4711 --key hub.key --inbox hub.db --follow | grep ERROR
  stayfast listen 192.0.2.1:4711 --key hub.key --inbox hub.db --exec './store.sh'
  sqlite3 hub.db 'SELECT sender, stream, number, body FROM stayfast_records ORDER BY seq'"
)]
pub struct Arguments {
    /// Where to listen, as ADDRESS:PORT; [::] takes IPv4 and IPv6 on all addresses
    address: SocketAddr,
    /// This node's key file
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The inbox, a database file; made if it is not there
    #[arg(long, value_name = "DB")]
    inbox: PathBuf,
    /// The list of authorized keys, to which `stayfast authorize` adds
    #[arg(long, value_name = "FILE", default_value = "authorized")]
    authorized: PathBuf,
    /// Give records to this shell command instead of storing them
    #[arg(long, value_name = "COMMAND", conflicts_with = "follow")]
    exec: Option<String>,
    /// Let a command that runs when a signal comes go on for so long, before it is killed; a second signal kills it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = human::parse_duration, requires = "exec")]
    grace: Duration,
    /// Print records to standard output once they are stored
    #[arg(long)]
    follow: bool,
    /// Write each record's length (4 B, big-endian) before it, and no line ends
    #[arg(long)]
    framed: bool,
    #[command(flatten)]
    format: Format,
    /// End with the demo
    #[arg(long, hide = true)]
    leash: bool,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        if self.leash {
            children::leash()?;
        }
        if self.framed && self.exec.is_none() && !self.follow {
            return Err(Failure::environment("--framed says how records are written for --exec or --follow: add one"));
        }
        let interrupt = match self.exec.is_some() {
            true => Interrupt::catch_both()?,
            false => Interrupt::catch()?,
        };
        let identity = files::identity(&self.key)?;
        let public = identity.public();
        let cursors = Cursors::sqlite(&self.inbox).map_err(|e| Failure::store(&self.inbox, &e))?;
        let receiving = self.receiving(&interrupt)?;
        let cursors = if receiving.is_some() { cursors } else { cursors.keep_records() };
        let settings = Settings { bind: vec![self.address], ..Settings::default() };
        let inbox = Inbox::spawn(settings, identity, cursors).map_err(Failure::environment)?;
        let inbox = inbox.authorized(&self.authorized).map_err(Failure::environment)?;
        let addresses: Vec<String> = inbox.local_addresses().iter().map(ToString::to_string).collect();
        let json = json!({ "listen": addresses, "public_key": public.to_string() });
        match self.format.json && !self.follow {
            true => self.format.print(&json, "")?,
            false => remark(format!("listening on {}, public key {public}", addresses.join(", "))),
        }
        match receiving {
            Some(receiving) => receiving.run(inbox, &interrupt),
            None => {
                let mut troubles = Troubles::new(&self.inbox);
                while !interrupt.is_set() {
                    inbox.take_missing().iter().for_each(tell_missing);
                    troubles.look(&inbox)?;
                    std::thread::sleep(TICK);
                }
                Ok(())
            }
        }
    }

    /// What is done with batches here; `None` if the inbox stores them by itself.
    fn receiving(&self, interrupt: &Interrupt) -> Outcome<Option<Receiving>> {
        let framing = Framing::new(self.framed);
        let store = match &self.exec {
            Some(command) => Store::Command(Exec::new(command, framing, self.grace, interrupt.clone())),
            None if self.follow => Store::Table(Follow { framing, json: self.format.json }),
            None => return Ok(None),
        };
        Receiving::new(&self.inbox, store).map(Some)
    }
}
