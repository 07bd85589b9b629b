//! One transfer by stayfast: two drivers, two sockets on loopback, one stream.

use crate::load::{Append, Failure, Load, Outcome, PATIENCE};
use crate::memory::{Place, STREAM, Shelf};
use crate::records::{Sink, Source};
use crate::usage::Usage;
use stayfast_handoff::Watch;
use stayfast_link::Config;
use stayfast_net::{Driver, Handle, PeerRef, PeerSpec, Progress, Settings, generate};
use stayfast_store::{Accepted, Inbox, Item, Level, Outbox};
use std::sync::Arc;
use std::thread;

/// Sends `load`. The clocks stop when the sender has heard that the last record is STORED.
///
/// # Errors
/// Anything that is not a complete transfer in order.
pub fn run(load: &Load) -> Result<Outcome, Failure> {
    let (edge, hub) = (generate()?, generate()?);
    let settings = settings(load)?;
    let place = Place::default();
    let from_edge = PeerSpec { allow: Some(vec![STREAM.into()]), ..PeerSpec::new("edge", edge.public()) };
    let receiver = Driver::spawn(&hub, settings.clone(), vec![from_edge], Some(Box::new(place.clone())))?;
    let shelf = Shelf::default();
    let to_hub = PeerSpec {
        hosts: receiver.local_addresses().iter().map(ToString::to_string).collect(),
        outbox: Some(Box::new(shelf.clone())),
        ..PeerSpec::new("hub", hub.public())
    };
    let sender = Driver::spawn(&edge, settings, vec![to_hub], None)?;

    let (handle, at_hub, load) = (sender.handle(), receiver.handle(), *load);
    let storing = thread::Builder::new().name("bench-storing".into()).spawn(move || store(&at_hub, place, &load))?;
    let mut application = Application::new(handle.clone(), shelf, load)?;
    application.send_until(load.warmup)?;
    let start = Usage::now();
    application.send_until(load.total())?;
    let spent = start.spent();

    let sink = storing.join().map_err(|_| "the storing thread panicked")??;
    let stored = application.progress.get().stored.0;
    if (sink.taken(), stored) != (load.total(), load.total()) {
        return Err(format!("{} of {} records arrived, {stored} STORED", sink.taken(), load.total()).into());
    }
    let (here, there) = (handle.counters(), receiver.handle().counters());
    Ok(Outcome {
        spent,
        records: load.records,
        bytes: load.records * load.size as u64,
        datagrams: here.sent + there.sent,
        calls: here.send_calls + there.send_calls,
        lost: handle.status().iter().map(|peer| peer.link.lost).sum(),
    })
}

fn settings(load: &Load) -> Result<Settings, Failure> {
    Ok(Settings {
        bind: vec!["127.0.0.1:0".parse()?],
        config: Config { datagram: load.datagram, max_datagram: 0, ..Config::default() },
        ..Settings::default()
    })
}

/// The receiving application: checks and copies each batch, moves the cursor, answers.
fn store(handle: &Handle, mut place: Place, load: &Load) -> Result<Sink, Failure> {
    let mut sink = Sink::new(load.size);
    while sink.taken() < load.total() {
        let pending = handle.next_delivery(Some(PATIENCE)).ok_or("no batch came for a long time")?;
        let run = &pending.delivery.run;
        if run.first.0 != sink.taken() {
            return Err(format!("a batch begins at record {}, {} was due", run.first.0, sink.taken()).into());
        }
        for item in run.iter() {
            match item {
                Item::Record(_, body) => sink.take(body)?,
                Item::Hole(number, _) => return Err(format!("record {} is missing", number.0).into()),
            }
        }
        match place.deliver(&pending.delivery)? {
            Accepted::Fresh => pending.stored(Level::Power),
            Accepted::Raced(at) => return Err(format!("the cursor stood at {}", at.next.0).into()),
        }
    }
    Ok(sink)
}

/// The sending application.
struct Application {
    handle: Handle,
    hub: PeerRef,
    shelf: Shelf,
    source: Source,
    progress: Arc<Watch<Progress>>,
    stream: Arc<str>,
    load: Load,
}

impl Application {
    fn new(handle: Handle, shelf: Shelf, load: Load) -> Result<Application, Failure> {
        let hub = handle.find("hub").ok_or("the driver has lost its peer")?;
        let progress = handle.stored(hub, STREAM);
        Ok(Application { handle, hub, shelf, source: Source::new(load.size), progress, stream: STREAM.into(), load })
    }

    /// Appends records up to number `end`, never far ahead of what is stored, and waits until all are.
    fn send_until(&mut self, end: u64) -> Result<(), Failure> {
        let ahead = self.load.ahead / self.load.size as u64;
        while self.source.made() < end {
            let records: Vec<&[u8]> = self.source.batch(end).collect();
            let next = match self.load.append {
                Append::Handle => self.handle.append(self.hub, STREAM, &records)?.end(),
                Append::Store => {
                    let next = self.shelf.append(STREAM, &records)?.end();
                    self.handle.appended(self.hub, &self.stream, next);
                    next
                }
            };
            self.wait_for(next.0.saturating_sub(ahead))?;
        }
        self.wait_for(end)
    }

    fn wait_for(&self, stored: u64) -> Result<(), Failure> {
        let progress = self.progress.wait_until(|p| p.stored.0 >= stored || p.trouble.is_some(), Some(PATIENCE))?;
        progress.trouble.map_or(Ok(()), |trouble| Err(trouble.into()))
    }
}
