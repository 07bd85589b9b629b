use super::{Flow, Place, Sample};
use crate::plan::Cell;
use stayfast_sim::{NodeId, TCP_PAYLOAD, TcpConfig, TcpFlow, World};
use stayfast_units::Time;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The simulator's model of kernel TCP with CUBIC. It always has something to send.
pub struct Tcp {
    flow: TcpFlow,
    size: u64,
}

impl Tcp {
    /// Starts at once.
    pub fn new(place: &mut Place<'_>, cell: &Cell) -> Tcp {
        let address = |end| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 2, place.flow, end)), 80);
        let flow = TcpFlow::add(place.world, address(1), TcpConfig::to(address(2)), place.there, place.back);
        Tcp { flow, size: cell.size as u64 }
    }
}

impl Flow for Tcp {
    fn offer(&mut self, _world: &mut World, _records: u64) {}

    fn taken(&self, world: &World) -> u64 {
        world.node(self.flow.receiver).map_or(0, |receiver| receiver.delivered() / self.size)
    }

    fn log<'a>(&self, _world: &'a World) -> &'a [(Time, u64)] {
        &[]
    }

    fn sender(&self) -> NodeId {
        self.flow.sender.id()
    }

    fn sample(&self, world: &World) -> Sample {
        let Some(sender) = world.node(self.flow.sender) else { return Sample::default() };
        let state = sender.state();
        Sample {
            window: (state.window * TCP_PAYLOAD as f64) as u64,
            in_flight: state.in_flight * TCP_PAYLOAD,
            rtt_us: sender.rtt().as_micros() as u64,
            lost: sender.resent(),
            late: 0,
            episodes: sender.recoveries() + sender.timeouts(),
            undone: sender.undone(),
            resent: sender.resent() * TCP_PAYLOAD,
        }
    }
}
