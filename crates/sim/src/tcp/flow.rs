use super::{TcpConfig, TcpReceiver, TcpSender};
use crate::{Handle, PathId, World};
use core::net::SocketAddr;
use stayfast_units::{Rate, Time};

/// A sender and its receiver in a [`World`].
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::{Limit, Path, TcpConfig, TcpControl, TcpFlow, World};
/// use stayfast_units::{Rate, Time};
///
/// let mut world = World::new(1);
/// let rate = Rate::from_bits_per_sec(20_000_000);
/// let there = world.add_path("there", Path::new().delay(Duration::from_millis(10)).rate(rate, Limit::Packets(33)));
/// let back = world.add_path("back", Path::new().delay(Duration::from_millis(10)));
/// let flows = [TcpControl::Cubic, TcpControl::Reno].map(|control| {
///     let n = control as u8;
///     let from = format!("10.0.0.{n}:1").parse().unwrap();
///     let config = TcpConfig { control, ..TcpConfig::to(format!("10.0.1.{n}:1").parse().unwrap()) };
///     TcpFlow::add(&mut world, from, config, &[there], &[back])
/// });
///
/// let (second, minute) = (Time::from_millis(1_000), Time::from_millis(60_000));
/// world.run_until(minute);
/// let rates = flows.map(|flow| flow.goodput(&world, second, minute).bits_per_sec());
/// assert!(rates.iter().all(|rate| *rate > 5_000_000), "{rates:?}");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TcpFlow {
    /// The end that sends.
    pub sender: Handle<TcpSender>,
    /// The end that receives.
    pub receiver: Handle<TcpReceiver>,
}

impl TcpFlow {
    /// Adds both ends to a world, the sender at `from`, with a route for the data and one for the acknowledgements.
    pub fn add(world: &mut World, from: SocketAddr, config: TcpConfig, there: &[PathId], back: &[PathId]) -> TcpFlow {
        let sender = world.add("tcp sender", from, TcpSender::new(config));
        let receiver = world.add("tcp receiver", config.to, TcpReceiver::new());
        world.route(sender, receiver, there);
        world.route(receiver, sender, back);
        TcpFlow { sender, receiver }
    }

    /// [`TcpReceiver::goodput`], or nothing while the receiver is stopped.
    pub fn goodput(&self, world: &World, from: Time, to: Time) -> Rate {
        world.node(self.receiver).map_or(Rate::ZERO, |receiver| receiver.goodput(from, to))
    }
}
