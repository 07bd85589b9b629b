//! The run itself: two processes, and the one who kills them.

use super::children::Process;
use super::corpus::Corpus;
use super::kills::{Kill, Side};
use super::summary::{Restart, Summary};
use super::watch::Watch;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::proxy::{Habits, Proxy};
use crate::threads;
use stayfast_sim::PathSpec;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the receiver's database is looked at: the precision of what is measured.
const TICK: Duration = Duration::from_millis(1);
/// Bytes that may wait in the outbox, so that the sender is still appending when it is killed.
const AHEAD: &str = "1MB";

/// What the demo is about.
pub struct Plan<'a> {
    /// Where keys, databases and logs are.
    pub dir: &'a Path,
    /// What is sent.
    pub corpus: &'a Corpus,
    /// The file it comes from, if it is one.
    pub file: Option<&'a Path>,
    /// The path between the two.
    pub path: PathSpec,
    /// Where the kills come from.
    pub seed: u64,
    /// How many there shall be.
    pub kills: u32,
}

/// Runs the demo to its end, when everything is stored and the sender knows it.
pub fn run(plan: &Plan<'_>, timeout: Duration, interrupt: &Interrupt) -> Outcome<Summary> {
    let (mut show, mut proxy) = Show::new(plan)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let proxy = threads::start(move || proxy.run(|| flag.load(Ordering::Relaxed)))?;
    let outcome = show.direct(timeout, interrupt);
    show.progress.clear();
    stop.store(true, Ordering::Relaxed);
    if let Ok(Err(broken)) = proxy.join() {
        return Err(broken);
    }
    outcome?;
    Ok(show.summary)
}

struct Show {
    sender: Process,
    receiver: Process,
    watch: Watch,
    kills: VecDeque<Kill>,
    planned: u32,
    total: u64,
    stored: u64,
    begin: Instant,
    /// Runs of the sender that the receiver's side of the path has seen.
    arrivals: Arc<AtomicU64>,
    /// A restart that has not led to a stored record yet.
    open: Option<Open>,
    summary: Summary,
    progress: Progress,
}

/// A restart whose outcome is awaited.
struct Open {
    side: Side,
    start: Instant,
    /// What is stored from now on is owed to this restart. After one of the sender, that is so once its first datagram
    /// has come through: what is stored before was on its way already.
    counts: bool,
    /// Runs of the sender that had been seen before.
    arrivals: u64,
}

impl Show {
    fn new(plan: &Plan<'_>) -> Outcome<(Show, Proxy)> {
        let Plan { dir, corpus, .. } = plan;
        if dir.join("edge.db").exists() || dir.join("hub.db").exists() {
            return Err(Failure::environment(format!(
                "{} holds databases already: name an empty folder",
                dir.display()
            )));
        }
        let edge = files::make_identity(&dir.join("edge.key"))?.public();
        let hub = files::make_identity(&dir.join("hub.key"))?.public().to_string();
        let authorized = dir.join("authorized");
        std::fs::write(&authorized, format!("{edge} edge\n")).map_err(|e| Failure::file(&authorized, &e))?;
        let receiver = free_port()?;
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let proxy = Proxy::bind(here, receiver, &plan.path, Habits::default())?;
        let sending = sending(plan, proxy.local_addr()?, &hub);
        let total = corpus.total();
        let show = Show {
            sender: Process::new(Side::Sender, sending, &dir.join("edge.log")),
            receiver: Process::new(Side::Receiver, listening(dir, receiver), &dir.join("hub.log")),
            watch: Watch::open(&dir.join("hub.db"))?,
            kills: super::kills::plan(plan.seed, plan.kills, total).into(),
            planned: plan.kills,
            total,
            stored: 0,
            begin: Instant::now(),
            arrivals: proxy.arrivals(),
            open: None,
            summary: Summary::default(),
            progress: Progress::new(total),
        };
        Ok((show, proxy))
    }

    fn direct(&mut self, timeout: Duration, interrupt: &Interrupt) -> Outcome {
        self.begin = self.receiver.start()?;
        self.sender.start()?;
        loop {
            self.look()?;
            if self.is_over()? {
                self.summary.took = self.begin.elapsed();
                return Ok(());
            }
            self.kill_if_due()?;
            let why = match () {
                () if interrupt.is_set() => "interrupted",
                () if self.begin.elapsed() > timeout => "timeout",
                () => {
                    std::thread::sleep(TICK);
                    continue;
                }
            };
            let (stored, total) = (human::count(self.stored), human::records(self.total));
            return Err(Failure::failed(format!("{why}: {stored} of {total} stored; {}", self.sender.last_words())));
        }
    }

    /// Is anything new stored, and is that the end of waiting after a restart?
    fn look(&mut self) -> Outcome {
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        let news = self.watch.news(|_| {})?;
        self.stored += news;
        self.progress.set(self.stored, self.total);
        let Some(open) = &mut self.open else { return Ok(()) };
        if news > 0 && open.counts {
            let (side, took) = (open.side, open.start.elapsed());
            self.close(side, Some(took));
        } else {
            open.counts |= arrivals > open.arrivals;
        }
        Ok(())
    }

    fn close(&mut self, side: Side, took: Option<Duration>) {
        self.open = None;
        self.summary.restarts.push(Restart { side, took });
        let (count, planned, stored) = (self.summary.restarts.len(), self.planned, human::count(self.stored));
        let effect = match took {
            Some(took) => format!("next record stored {} after its restart", human::duration(took)),
            None => "killed again before anything was stored".to_string(),
        };
        let at = human::duration(self.begin.elapsed());
        self.progress
            .remark(&format!("{at:>7}  {stored:>9} stored  kill {count:>2} of {planned}: {side:<8}  {effect}"));
    }

    fn is_over(&mut self) -> Outcome<bool> {
        if self.receiver.ended().is_some() {
            return Err(Failure::failed(format!("the receiver ended by itself: {}", self.receiver.last_words())));
        }
        match self.sender.ended() {
            Some(status) if status.success() => Ok(true),
            Some(_) => Err(Failure::failed(format!("the sender ended by itself: {}", self.sender.last_words()))),
            None => Ok(false),
        }
    }

    fn kill_if_due(&mut self) -> Outcome {
        let recovering = self.open.is_some();
        let due = |kill: &mut Kill| self.stored >= kill.stored && (kill.at_once || !recovering);
        let Some(kill) = self.kills.pop_front_if(due) else { return Ok(()) };
        let at = Instant::now() + kill.delay;
        while Instant::now() < at {
            std::thread::sleep(TICK);
            self.look()?;
        }
        if let Some(open) = &self.open {
            self.close(open.side, None);
        }
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        let process = match kill.side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        };
        process.kill()?;
        self.summary.killed += 1;
        let start = process.start()?;
        self.open = Some(Open { side: kill.side, start, counts: kill.side == Side::Receiver, arrivals });
        Ok(())
    }
}

fn sending(plan: &Plan<'_>, to: SocketAddr, hub: &str) -> Vec<String> {
    let file = |name| plan.dir.join(name).display().to_string();
    let to = to.to_string();
    let mut words = ["send", &to, "--peer", hub, "--limit", AHEAD, "--leash"].map(String::from).to_vec();
    words.extend(["--outbox".into(), file("edge.db"), "--key".into(), file("edge.key")]);
    match (plan.corpus, plan.file) {
        (Corpus::Generated(generated), _) => words.extend(["--generate".into(), generated.to_string()]),
        (Corpus::Lines(_), path) => {
            words.extend(["--stream", Corpus::LINES, "--resume"].map(String::from));
            words.extend(path.map(|path| path.display().to_string()));
        }
    }
    words
}

fn listening(dir: &Path, at: SocketAddr) -> Vec<String> {
    let file = |name| dir.join(name).display().to_string();
    let mut words = vec!["listen".into(), at.to_string(), "--leash".into()];
    words.extend(["--key".into(), file("hub.key"), "--inbox".into(), file("hub.db")]);
    words.extend(["--authorized".into(), file("authorized")]);
    words
}

/// An address of this machine that nobody uses now.
fn free_port() -> Outcome<SocketAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr());
    socket.map_err(|e| Failure::environment(format!("no port on 127.0.0.1: {e}")))
}
