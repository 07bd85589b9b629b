use crate::Failure;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use tun_rs::{DeviceBuilder, SyncDevice};

/// Bytes of the largest IP packet that the devices take. A path may be narrower.
pub const MTU: u16 = 1_500;
/// Packets that a device holds until the emulator has read them: more than two seconds at 50 Mbit/s.
const DEVICE_QUEUE: u32 = 10_000;
const DEVICE: &str = "/dev/net/tun";

/// What the kernel's TCP is told in each namespace: buffers that never limit a flow (several times 200 Mbit/s x 100 ms),
/// and to remember nothing from one connection to the next.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/tcp_rmem", "4096 1048576 67108864"),
    ("ipv4/tcp_wmem", "4096 1048576 67108864"),
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv6/conf/all/disable_ipv6", "1"),
];

/// Makes this process one that may make namespaces: as root at once, as another user in a user namespace of its own.
/// No other thread may have been started yet.
///
/// # Errors
/// What is missing, and what to do.
pub fn isolate() -> Result<(), Failure> {
    if !Path::new(DEVICE).exists() {
        let why = "there is no /dev/net/tun: `modprobe tun`, or give it to the container";
        return Err(Failure::NotAllowed(why.into()));
    }
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    if unshare(CloneFlags::CLONE_NEWNET).is_err() {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
            .map_err(Failure::privilege("no network namespace"))?;
        let maps = [
            ("/proc/self/setgroups", String::from("deny")),
            ("/proc/self/uid_map", format!("0 {uid} 1")),
            ("/proc/self/gid_map", format!("0 {gid} 1")),
        ];
        for (file, text) in maps {
            fs::write(file, text).map_err(Failure::privilege("cannot become root of a user namespace"))?;
        }
    }
    File::options().read(true).write(true).open(DEVICE).map(drop).map_err(|e| {
        Failure::NotAllowed(format!("/dev/net/tun cannot be opened ({e}): run it as root, or `chmod 666` it"))
    })
}

/// A network namespace with one TUN device, which everything in it sends to. It ends with the last thread in it.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    address: Ipv4Addr,
}

impl Namespace {
    /// A new namespace whose device has this address, and the device. Two of them in one /24 reach each other as soon as
    /// an emulator moves packets between their devices.
    ///
    /// # Errors
    /// [`isolate`] was not called, or what the system says.
    pub fn new(address: Ipv4Addr) -> Result<(Namespace, SyncDevice), Failure> {
        let made = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(Failure::privilege("no network namespace"))?;
            let file = File::open("/proc/thread-self/ns/net").map_err(Failure::system("no network namespace"))?;
            let device = device(address).map_err(Failure::privilege("no TUN device"))?;
            for (name, value) in SETTINGS {
                // Where /proc cannot be written, the kernel's defaults carry a flow of 50 Mbit/s all the same.
                let _ = fs::write(Path::new("/proc/sys/net").join(name), value);
            }
            Ok((Namespace { file, address }, device))
        });
        made.join().map_err(|_| Failure::System("no network namespace", io::ErrorKind::Other.into()))?
    }

    /// The address of its device.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `body` on a thread in this namespace. The sockets that it makes are in it, wherever they are used later, and so
    /// are the threads that it starts.
    ///
    /// # Errors
    /// No thread, or it cannot enter.
    pub fn within<T: Send>(&self, body: impl FnOnce() -> T + Send) -> Result<T, Failure> {
        let enter = || {
            move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(Failure::system("no way into the namespace"))?;
            Ok(body())
        };
        let result = thread::scope(|scope| scope.spawn(enter).join());
        result.map_err(|_| Failure::System("a thread in a namespace panicked", io::ErrorKind::Other.into()))?
    }
}

/// Without the header that offers segmentation: packets come as they would go over a wire.
fn device(address: Ipv4Addr) -> io::Result<SyncDevice> {
    let device =
        DeviceBuilder::new().name("path0").ipv4(address, 24, None).mtu(MTU).packet_information(false).build_sync()?;
    // Only root of the machine may do this by an ioctl; in a user namespace the device holds 500 packets.
    let _ = device.set_tx_queue_len(DEVICE_QUEUE);
    device.set_nonblocking(true)?;
    Ok(device)
}
