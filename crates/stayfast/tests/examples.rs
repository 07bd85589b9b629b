//! The two examples of the crate's front page, as they stand there but for their paths, in one process.

use stayfast::{Cursors, Fresh, Identity, Inbox, Link, Outbox};
use std::path::Path;
use std::time::Duration;
use std::{fs, thread};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const LONG: Duration = Duration::from_secs(30);

fn send(dir: &Path, host: &str, key: &str) -> Result {
    let outbox = Outbox::open(dir.join("edge.db"))?;
    let link = Link::new(Identity::load_or_create(dir.join("edge.key"))?, outbox)
        .to(host, key) // nothing is dialled
        .spawn()?;
    let receipt = link.put("orders", b"order 1")?; // durable on return
    receipt.stored(LONG)?; // optional
    Ok(())
}

fn receive(dir: &Path, address: &str) -> Result {
    let mut db = rusqlite::Connection::open(dir.join("hub.db"))?;
    let hub = Identity::load_or_create(dir.join("hub.key"))?;
    let mut inbox =
        Inbox::bind(address, hub, Cursors::sqlite(dir.join("hub.db"))?)?.authorized(dir.join("authorized"))?;
    loop {
        let batch = inbox.next()?; // in order per (sender, stream)
        let tx = db.transaction()?;
        let Fresh(delivery) = batch.accept(&tx)? else { continue }; // Raced: another node was first
        for r in &batch {
            tx.execute("INSERT INTO orders VALUES (?1)", [r.bytes()])?;
        }
        tx.commit()?; // cursor and effect together: exactly once
        delivery.stored(); // only now STORED leaves
    }
}

#[test]
fn the_front_page() -> Result {
    let dir = tempfile::tempdir()?;
    let dir = dir.path();
    rusqlite::Connection::open(dir.join("hub.db"))?.execute_batch("CREATE TABLE orders (what BLOB)")?;
    let edge = Identity::load_or_create(dir.join("edge.key"))?.public();
    let hub = Identity::load_or_create(dir.join("hub.key"))?.public().to_string();
    fs::write(dir.join("authorized"), format!("{edge} pi3 in=orders\n"))?;
    // A free port, for the example has a fixed one.
    let address = std::net::UdpSocket::bind("[::1]:0")?.local_addr()?.to_string();

    // The receiver runs for ever, as receivers do: until the test's process ends.
    let (place, listen) = (dir.to_path_buf(), address.clone());
    thread::spawn(move || receive(&place, &listen).map_err(|error| eprintln!("the receiver: {error}")));
    // Each time another process, so to speak: the outbox knows how far it was.
    for _ in 0..3 {
        send(dir, &address, &hub)?;
    }

    let db = rusqlite::Connection::open(dir.join("hub.db"))?;
    let count = |select| db.query_row(select, [], |row| row.get::<_, i64>(0));
    assert_eq!(count("SELECT count(*) FROM orders WHERE what = CAST('order 1' AS BLOB)")?, 3);
    assert_eq!(count("SELECT count(*) FROM orders")?, 3, "nothing else, and nothing twice");
    Ok(())
}
