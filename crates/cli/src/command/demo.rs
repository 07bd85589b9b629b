use crate::demo::corpus::{Corpus, Generated, Kind};
use crate::demo::proof;
use crate::demo::show::{self, Plan};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::interrupt::Interrupt;
use crate::output::{Format, Paint, remark};
use serde_json::json;
use stayfast::Limits;
use stayfast_sim::PathSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of lines for each kill, so that the sender is not done before it.
const BYTES_A_KILL: u64 = 300_000;

/// See it work: two processes, a bad path, kill -9 for both again and again, and a proof at the end
///
/// A sender and a receiver (this program's `send` and `listen`) talk over a path that loses, delays and reorders. Both
/// are killed with SIGKILL at random moments and started again at once. In the end the two databases are read: every
/// record that was appended must be stored exactly once, in order, byte for byte. Besides, it measures for each restart
/// how long it takes until the next record is stored. Exit code 1 if the proof fails.
///
/// The same seed gives the same records, the same losses for the same packets, and the same plan of kills.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast demo
  stayfast demo --seed 7 --kills 50
  stayfast demo --path 'rate=5M rtt=300ms jitter=30ms loss=5%' --timeout 20m
  stayfast demo --file /var/log/syslog --dir /tmp/look      # keeps the databases, keys and logs there")]
pub struct Arguments {
    /// Where all chance comes from [default: random, and printed]
    #[arg(long)]
    seed: Option<u64>,
    /// How often one of the processes is killed
    #[arg(long, default_value_t = 24)]
    kills: u32,
    /// Records of each size, as COUNTxSIZE,COUNTxSIZE
    #[arg(long, default_value = "25500x61,4000x1013,500x16013", conflicts_with = "file")]
    records: String,
    /// Send the lines of this file instead, again and again if they are few
    #[arg(long)]
    file: Option<PathBuf>,
    /// The path between them, in the words of `stayfast badnet`'s options
    #[arg(long, default_value = "rate=50M rtt=40ms jitter=3ms loss=1%")]
    path: String,
    /// Work in this folder, and keep it [default: a temporary one]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Give up after so long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = human::parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    format: Format,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let interrupt = Interrupt::catch()?;
        let seed = match self.seed {
            Some(seed) => seed,
            // Short enough to be typed.
            None => u64::from(getrandom::u32().map_err(|e| Failure::environment(format!("no randomness: {e}")))?),
        };
        let mut corpus = self.corpus(seed)?;
        let mut path: PathSpec = self.path.parse().map_err(|e| Failure::environment(format!("--path: {e}")))?;
        path.seed = seed;
        let temporary = tempfile::Builder::new().prefix("stayfast-demo-").tempdir();
        let temporary = temporary.map_err(|e| Failure::environment(format!("no temporary folder: {e}")))?;
        let dir = match &self.dir {
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|e| Failure::file(dir, &e))?;
                dir.as_path()
            }
            None => temporary.path(),
        };
        let file = self.prolong(&mut corpus, dir)?;
        remark(format!("seed {seed}: {}, {} kills, {path}", human::records(corpus.total()), self.kills));
        let plan = Plan { dir, corpus: &corpus, file: file.as_deref(), path, seed, kills: self.kills };
        let result = self.prove(&plan, &interrupt);
        if result.is_err() && self.dir.is_none() {
            // Whoever wants to know why needs the evidence.
            remark(format!("keys, databases and logs are kept in {}", temporary.keep().display()));
        }
        result
    }

    fn prove(&self, plan: &Plan<'_>, interrupt: &Interrupt) -> Outcome {
        let Plan { dir, corpus, seed, .. } = plan;
        let summary = show::run(plan, self.timeout, interrupt)?;
        let accounts = proof::read(corpus, &dir.join("edge.db"), &dir.join("hub.db"))?;
        let mut json = proof::json(&accounts);
        json["seed"] = json!(seed);
        json["restarts"] = summary.json();
        json["restarts"]["planned"] = json!(self.kills);
        if summary.killed < self.kills {
            let (killed, planned) = (summary.killed, self.kills);
            remark(format!(
                "only {killed} of {planned} kills took place, for everything was stored before the others: send more records, or \
                 over a slower path"
            ));
        }
        let text = format!("{}\n{}", summary.text(), proof::text(&accounts, Paint::stdout()));
        self.format.print(&json, &text)?;
        match accounts.iter().all(proof::Account::is_proven) {
            true if summary.killed == 0 && self.kills > 0 => {
                Err(Failure::failed("nobody was killed: nothing is proven"))
            }
            true => Ok(()),
            false => {
                Err(Failure::failed(format!("the proof failed; `stayfast demo --seed {seed}` plans the same again")))
            }
        }
    }

    /// A file that is too short for so many kills is sent again and again: from a copy in `dir`.
    fn prolong(&self, corpus: &mut Corpus, dir: &Path) -> Outcome<Option<PathBuf>> {
        let Some(file) = &self.file else { return Ok(None) };
        let times = corpus.repeat(u64::from(self.kills) * BYTES_A_KILL)?;
        if times == 1 {
            return Ok(Some(file.clone()));
        }
        remark(format!("{} is sent {times} times over, so that there is something to disturb", file.display()));
        let copy = dir.join("lines");
        corpus.write(&copy)?;
        Ok(Some(copy))
    }

    fn corpus(&self, seed: u64) -> Outcome<Corpus> {
        let limit = Limits::default().record;
        if let Some(file) = &self.file {
            return Corpus::from_file(file, limit);
        }
        let generated: Generated = format!("{seed}:{}", self.records)
            .parse()
            .map_err(|_| Failure::environment("--records: expected COUNTxSIZE,COUNTxSIZE, such as 1000x61,10x16013"))?;
        let twice = |kind: &Kind| generated.kinds.iter().filter(|other| other.size == kind.size).count() > 1;
        if generated.kinds.iter().any(|kind| kind.size > limit || twice(kind)) {
            return Err(Failure::environment(format!("--records: sizes must differ and be at most {limit} B")));
        }
        Ok(Corpus::Generated(generated))
    }
}
