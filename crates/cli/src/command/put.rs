use super::send::key_file;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::interrupt::Interrupt;
use crate::output::Format;
use crate::progress::Silence;
use crate::uplink::{Peer, Uplink};
use serde_json::json;
use stayfast::{Limits, PublicKey};
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Put one record into an outbox
///
/// It is durable when the command returns. It goes out with the process that runs the link of this outbox, now or
/// later; with --to and --peer, this command runs the link itself and waits until the record is stored. Without RECORD,
/// all of standard input is one record, whatever bytes it holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast put --outbox edge.db --stream orders 'order 1'
  stayfast put --outbox edge.db --stream photos < photo.jpg
  stayfast put --outbox edge.db --stream orders --to hub:4711 --peer $HUB --timeout 30s 'order 2'")]
pub struct Arguments {
    /// The record
    record: Option<String>,
    /// The outbox, a database file; made if it is not there
    #[arg(long, value_name = "DB")]
    outbox: PathBuf,
    /// The stream to append to
    #[arg(long)]
    stream: String,
    /// Send it to the receiver at HOST:PORT and wait until it is stored
    #[arg(long, value_name = "HOST", requires = "peer")]
    to: Option<String>,
    /// The receiver's public key
    #[arg(long, value_name = "KEY", requires = "to", value_parser = files::public_key, allow_hyphen_values = true)]
    peer: Option<PublicKey>,
    /// This node's key file [default: the outbox's name with .key at its end]
    #[arg(long, value_name = "FILE", requires = "to")]
    key: Option<PathBuf>,
    /// Wait so long for the receiver [default: for ever]
    #[arg(long, value_name = "TIME", requires = "to", value_parser = human::parse_duration)]
    timeout: Option<Duration>,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(mut self) -> Outcome {
        let interrupt = Interrupt::catch()?;
        let record = match self.record.take() {
            Some(record) => record.into_bytes(),
            None => read_input()?,
        };
        let peer = self.to.clone().zip(self.peer).map(|(host, peer)| Peer { host, peer });
        let mut uplink = match &peer {
            Some(peer) => Uplink::link(&self.outbox, None, key_file(self.key.as_deref(), &self.outbox), peer)?,
            None => Uplink::append_only(&self.outbox, None)?,
        };
        let next = uplink.append(&self.stream, &[&record]).map_err(|e| Failure::append(&self.outbox, &e))?;
        let number = next.saturating_sub(1);
        if let Some(peer) = &peer {
            self.wait(&mut uplink, next, &peer.host, &interrupt)?;
        }
        let state = if peer.is_some() { "stored" } else { "durable" };
        let json = json!({ "stream": self.stream, "number": number, "state": state });
        self.format.print(&json, &format!("record {} of {} is {state}", human::count(number), self.stream))
    }

    fn wait(&self, uplink: &mut Uplink, next: u64, host: &str, interrupt: &Interrupt) -> Outcome {
        let start = Instant::now();
        let mut silence = Silence::new(host);
        while uplink.tail(&self.stream)?.0 < next {
            uplink.tend()?.into_iter().for_each(crate::output::remark);
            let health = uplink.health();
            if let Some(remark) = silence.after(health.silent_for) {
                crate::output::remark(remark);
            }
            let over = self.timeout.is_some_and(|timeout| start.elapsed() >= timeout);
            let trouble = uplink.trouble(&self.stream).filter(|_| uplink.runs_link());
            if over || interrupt.is_set() || trouble.is_some() {
                let why = trouble.unwrap_or_else(|| (if over { "timeout" } else { "interrupted" }).to_string());
                let number = human::count(next - 1);
                return Err(Failure::failed(format!(
                    "{why}: record {number} of {} is durable in {}, but not yet stored at {host}",
                    self.stream,
                    self.outbox.display()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

fn read_input() -> Outcome<Vec<u8>> {
    let limit = Limits::default().record as u64;
    let mut record = Vec::new();
    // One more, so that the outbox sees and says that it is too long.
    let read = std::io::stdin().take(limit + 1).read_to_end(&mut record);
    read.map_err(|e| Failure::environment(format!("standard input cannot be read: {e}")))?;
    Ok(record)
}
