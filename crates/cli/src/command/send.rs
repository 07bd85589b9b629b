use crate::demo::{children, corpus::Generated};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::input::{Framing, Records};
use crate::interrupt::Interrupt;
use crate::output::Format;
use crate::resume::Resume;
use crate::sending::{Ending, Sending, Target};
use crate::source::Source;
use crate::uplink::{Peer, Uplink};
use stayfast::Limits;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Send records, one a line, to a peer that stores them exactly once and in order
///
/// Records are read from FILE or standard input and appended to the outbox in batches; from that moment on nothing
/// loses them but the disk. They travel while more is read. At the end of the input it waits until all of them are
/// stored at the receiver. Nothing is dialled, and there is no connection to lose: if the peer is away, it goes on when
/// the peer is back; if this process ends, what is left in the outbox goes out with the next one.
///
/// Interrupted by Ctrl-C or SIGTERM, it still appends what it has read, and says how many records are durable. Killed
/// by SIGKILL, it cannot say anything, but the outbox knows: `stayfast outbox ls` shows under PUT how many records each
/// stream ever took. With --resume, give the same input again from its beginning: as many records as the stream has
/// are skipped (and those that are still in the outbox are compared with the input), so that each arrives exactly
/// once, however often it was killed. It counts on the input being all that is put into this stream; if it began at
/// number N of the stream, say --resume=N.
///
/// While another process runs the link of this outbox, records are only appended, and that process sends them; when it
/// ends, this one takes the link over.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tail -F app.log | stayfast send hub:4711 --peer $HUB --outbox edge.db --stream logs
  stayfast send hub:4711 --peer $HUB --outbox edge.db --stream numbers --timeout 1m numbers.txt
  seq 1 100000 | stayfast send hub:4711 --peer $HUB --outbox edge.db --stream seq --resume
  stayfast outbox export old.db --stream s --framed | stayfast send hub:4711 --peer $HUB --outbox edge.db --stream s --framed
  stayfast send hub:4711 --peer $HUB --outbox edge.db --stream logs /dev/null    # what is left there, until all is stored

Exit codes: 0 all stored; 1 not all stored (within --timeout, or interrupted), or the input is bad; 2 wrong usage, or
something around it is in the way")]
pub struct Arguments {
    #[command(flatten)]
    peer: Peer,
    /// Read records from this file instead of standard input
    file: Option<PathBuf>,
    /// The outbox, a database file; made if it is not there
    #[arg(long, value_name = "DB")]
    outbox: PathBuf,
    /// The stream to append to
    #[arg(long, required_unless_present = "generate")]
    stream: Option<String>,
    /// This node's key file [default: the outbox's name with .key at its end]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Each record has its length (4 B, big-endian) before it, and no line end
    #[arg(long)]
    framed: bool,
    /// The first record of the input is record N of the stream: skip those that it has
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    resume: Option<u64>,
    /// Return as soon as all records are durable in the outbox
    #[arg(long, conflicts_with = "timeout")]
    no_wait: bool,
    /// Wait so long for the receiver to store them, from the end of the input on [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration)]
    timeout: Option<Duration>,
    /// Most bytes that may wait in the outbox; reading pauses when it is full [default: 16GB]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    limit: Option<u64>,
    #[command(flatten)]
    format: Format,
    /// The demo's records instead of input, each kind on a stream of its own
    #[arg(long, hide = true, conflicts_with_all = ["file", "stream", "framed", "resume"])]
    generate: Option<Generated>,
    /// End with the demo
    #[arg(long, hide = true)]
    leash: bool,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        if self.leash {
            children::leash()?;
        }
        let interrupt = Interrupt::catch()?;
        let key = key_file(self.key.as_deref(), &self.outbox);
        let mut uplink = Uplink::link(&self.outbox, self.limit, key, &self.peer)?;
        let (streams, source) = self.source(&mut uplink)?;
        let ending = match (self.no_wait, self.timeout) {
            (true, _) => Ending::Durable,
            (false, timeout) => Ending::Stored(timeout),
        };
        let target = Target { outbox: &self.outbox, host: &self.peer.host };
        Sending::new(uplink, streams, target)?.run(source, ending, &interrupt, self.format)
    }

    /// The streams, each with what to skip, and where their records come from.
    fn source(&self, uplink: &mut Uplink) -> Outcome<(Vec<Resume>, Source)> {
        if let Some(generated) = &self.generate {
            let names = generated.kinds.iter().map(|kind| kind.stream());
            let streams = names.map(|name| Resume::nothing(name, uplink)).collect::<Outcome<Vec<_>>>()?;
            let at = streams.iter().map(|stream| stream.next).collect();
            return Ok((streams, Source::generate(generated.clone(), at)?));
        }
        let name = self.stream.clone().unwrap_or_default();
        let stream = match self.resume {
            Some(first) => Resume::from(name, first, uplink, &self.outbox)?,
            None => Resume::nothing(name, uplink)?,
        };
        let (framing, limit) = (Framing::new(self.framed), Limits::default().record);
        let source = match &self.file {
            Some(path) => {
                let file = File::open(path).map_err(|e| Failure::file(path, &e))?;
                Source::read(Records::new(file, framing, limit))?
            }
            None => Source::read(Records::new(std::io::stdin(), framing, limit))?,
        };
        Ok((vec![stream], source))
    }
}

/// The key file that goes with an outbox.
pub fn key_file(key: Option<&Path>, outbox: &Path) -> PathBuf {
    key.map_or_else(|| outbox.with_extension("key"), Path::to_path_buf)
}
