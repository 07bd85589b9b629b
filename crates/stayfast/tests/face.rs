//! What the face promises beyond its examples.

use stayfast::{
    Authorized, AuthorizedError, BindError, Cursors, Fresh, Identity, IdentityError, Inbox, Item, Link, LinkError,
    Outbox, Raced, ReceiptError, RecordNumber, StoreError, Trouble,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const LONG: Duration = Duration::from_secs(20);

/// A hub that stores bodies in a table of its own, and an edge.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Result<Place> {
        let place = Place { dir: tempfile::tempdir()? };
        place.db()?.execute_batch("CREATE TABLE orders (number INTEGER, what BLOB)")?;
        Ok(place)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn db(&self) -> Result<rusqlite::Connection> {
        Ok(rusqlite::Connection::open(self.path("hub.db"))?)
    }

    fn key(&self, name: &str) -> Result<Identity> {
        Ok(Identity::load_or_create(self.path(name))?)
    }

    fn inbox(&self, address: &str) -> Result<Inbox> {
        Ok(Inbox::bind(address, self.key("hub.key")?, Cursors::sqlite(self.path("hub.db"))?)?)
    }

    fn pi3(&self, patterns: &str) -> Result<Authorized> {
        let line = format!("{} pi3 in={patterns}", self.key("edge.key")?.public());
        Ok(Authorized::parse(&line)?.ok_or("a line")?)
    }

    fn link(&self, inbox: &Inbox) -> Result<Link> {
        let (host, hub) = (inbox.local_addresses()[0].to_string(), self.key("hub.key")?.public().to_string());
        Ok(Link::new(self.key("edge.key")?, Outbox::open(self.path("edge.db"))?).to(host, &hub).spawn()?)
    }

    fn stored(&self) -> Result<Vec<u64>> {
        let db = self.db()?;
        let mut select = db.prepare("SELECT number FROM orders ORDER BY rowid")?;
        let numbers = select.query_map([], |row| row.get::<_, i64>(0))?;
        Ok(numbers.map(|n| n.map(|n| n as u64)).collect::<std::result::Result<_, _>>()?)
    }
}

/// Takes one batch, and commits it. The numbers.
fn take(db: &mut rusqlite::Connection, inbox: &mut Inbox) -> Result<Vec<u64>> {
    let batch = inbox.next_within(LONG)?.ok_or("nothing came")?;
    let tx = db.transaction()?;
    let Fresh(delivery) = batch.accept(&tx)? else { return Ok(Vec::new()) };
    for r in &batch {
        tx.execute("INSERT INTO orders VALUES (?1, ?2)", (r.number().0 as i64, r.bytes()))?;
    }
    tx.commit()?;
    delivery.stored();
    Ok(batch.iter().map(|r| r.number().0).collect())
}

fn take_all(db: &mut rusqlite::Connection, inbox: &mut Inbox, count: usize) -> Result<Vec<u64>> {
    let mut taken = Vec::new();
    while taken.len() < count {
        taken.extend(take(db, inbox)?);
    }
    Ok(taken)
}

#[test]
fn put_many_keeps_its_order_and_its_receipt_is_for_all() -> Result {
    let place = Place::new()?;
    let mut inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("orders")?)?;
    let link = place.link(&inbox)?;
    let receipt = link.put_many("orders", (0..1_000).map(|n: u32| n.to_be_bytes()))?;
    assert_eq!((receipt.number(), receipt.count(), receipt.stream()), (RecordNumber(0), 1_000, "orders"));
    let mut db = place.db()?;
    assert_eq!(take_all(&mut db, &mut inbox, 1_000)?, (0..1_000).collect::<Vec<_>>());
    receipt.stored(LONG)?;
    assert!(receipt.is_stored());
    assert_eq!(link.progress("orders").stored, RecordNumber(1_000));
    let status = link.status();
    assert!(status.last_heard.is_some() && status.link.rtt < Duration::from_secs(1));
    assert_eq!(inbox.status()[0].name.as_ref(), "pi3");
    Ok(())
}

#[test]
fn a_transaction_that_is_rolled_back_gets_its_batch_again() -> Result {
    let place = Place::new()?;
    let mut inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("*")?)?;
    let link = place.link(&inbox)?;
    let receipt = link.put("orders", b"tea")?;
    let mut db = place.db()?;
    for _ in 0..3 {
        let batch = inbox.next_within(LONG)?.ok_or("nothing came")?;
        assert_eq!((batch.sender(), batch.stream(), batch.len()), ("pi3", "orders", 1));
        let tx = db.transaction()?;
        let accepted = batch.accept(&tx)?;
        assert!(matches!(accepted, Fresh(_)));
        tx.execute("INSERT INTO orders VALUES (7, 'x')", [])?;
        tx.rollback()?;
    }
    assert!(!receipt.is_stored());
    assert_eq!(take(&mut db, &mut inbox)?, [0]);
    receipt.stored(LONG)?;
    assert_eq!(place.stored()?, [0]);
    Ok(())
}

#[test]
fn two_nodes_on_one_database_store_each_record_once() -> Result {
    let place = Place::new()?;
    let pi3 = place.pi3("*")?;
    let (mut here, mut there) = (place.inbox("127.0.0.1:0")?.allow(&pi3)?, place.inbox("127.0.0.1:0")?.allow(&pi3)?);
    let mut db = place.db()?;
    let mut sent = 0;
    // The sender goes from one to the other and back; each finds the cursor where the other has left it.
    for round in 0..6 {
        let inbox = if round % 2 == 0 { &mut here } else { &mut there };
        let link = place.link(inbox)?;
        let receipt = link.put_many("orders", (0..7).map(|n: u8| [n]))?;
        sent += 7;
        while !receipt.is_stored() {
            if let Some(batch) = inbox.next_within(Duration::from_millis(20))? {
                let tx = db.transaction()?;
                match batch.accept(&tx)? {
                    Fresh(delivery) => {
                        for r in &batch {
                            tx.execute("INSERT INTO orders VALUES (?1, ?2)", (r.number().0 as i64, r.bytes()))?;
                        }
                        tx.commit()?;
                        delivery.stored();
                    }
                    Raced => tx.rollback()?,
                }
            }
        }
    }
    assert_eq!(place.stored()?, (0..sent).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn what_another_process_appends_beside_a_running_link_is_sent() -> Result {
    let place = Place::new()?;
    let mut inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("*")?)?;
    let link = place.link(&inbox)?;
    link.put("orders", b"by the link")?;
    let mut other = Outbox::open(place.path("edge.db"))?;
    other.append("orders", &[b"by another"])?;
    let mut db = place.db()?;
    assert_eq!(take_all(&mut db, &mut inbox, 2)?, [0, 1]);
    // Only one may run the link.
    let hub = place.key("hub.key")?.public().to_string();
    let second = Link::new(place.key("edge.key")?, Outbox::open(place.path("edge.db"))?).to("[::1]:4711", &hub).spawn();
    assert!(matches!(second.err(), Some(LinkError::Lock(_))));
    drop(link);
    let third = Link::new(place.key("edge.key")?, Outbox::open(place.path("edge.db"))?).to("[::1]:4711", &hub).spawn();
    assert!(third.is_ok(), "the lock went with the link");
    Ok(())
}

#[test]
fn the_list_of_authorized_keys_is_read_again_when_it_changes() -> Result {
    let place = Place::new()?;
    let list = place.path("authorized");
    fs::write(&list, "# nobody yet\n")?;
    let mut inbox = place.inbox("127.0.0.1:0")?.authorized(&list)?;
    let link = place.link(&inbox)?;
    let receipt = link.put("orders", b"tea")?;
    assert!(inbox.next_within(Duration::from_millis(300))?.is_none());
    fs::write(&list, format!("{} pi3 in=orders\n", place.key("edge.key")?.public()))?;
    let mut db = place.db()?;
    assert_eq!(take(&mut db, &mut inbox)?, [0]);
    receipt.stored(LONG)?;
    let until = |what: &str, holds: &dyn Fn(&Inbox) -> bool, inbox: &Inbox| {
        let begun = Instant::now();
        while !holds(inbox) {
            assert!(begun.elapsed() < LONG, "{what}");
            thread::sleep(Duration::from_millis(20));
        }
    };
    // That the file is away changes nothing.
    fs::remove_file(&list)?;
    until("it is told", &|inbox| matches!(inbox.list_troubles()[..], [AuthorizedError::Io { .. }]), &inbox);
    let receipt = link.put("orders", b"coffee")?;
    assert_eq!(take(&mut db, &mut inbox)?, [1]);
    receipt.stored(LONG)?;
    // A line that is wrong does not bring back one that was removed.
    fs::write(&list, "# pi3 is not let in any more\npi4, what was the key again?\n")?;
    until(
        "the line is told",
        &|inbox| matches!(inbox.list_troubles()[..], [AuthorizedError::Line { line: 2, .. }]),
        &inbox,
    );
    until("the peer stays", &|inbox| inbox.status().is_empty(), &inbox);
    fs::write(&list, "")?;
    until("the list is in order again", &|inbox| inbox.list_troubles().is_empty(), &inbox);
    Ok(())
}

#[test]
fn a_stream_that_is_not_allowed_is_told_in_the_receipt() -> Result {
    let place = Place::new()?;
    let inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("orders/*")?)?;
    let link = place.link(&inbox)?;
    let error = link.put("logs", b"x")?.stored(LONG).err();
    assert!(matches!(error, Some(ReceiptError::Trouble(Trouble::Refused { .. }))), "{error:?}");
    Ok(())
}

#[test]
fn a_rejected_record_halts_its_stream_and_only_that() -> Result {
    let place = Place::new()?;
    let mut inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("*")?)?;
    let link = place.link(&inbox)?;
    let poison = link.put("orders", b"poison")?;
    let batch = inbox.next_within(LONG)?.ok_or("nothing came")?;
    assert!(matches!(batch.items().next(), Some(Item::Record(_))));
    batch.reject(RecordNumber(0));
    let error = poison.stored(LONG).err();
    assert!(matches!(error, Some(ReceiptError::Trouble(Trouble::Refused { .. }))), "{error:?}");
    let fine = link.put("others", b"fine")?;
    let mut db = place.db()?;
    assert_eq!(take(&mut db, &mut inbox)?, [0]);
    fine.stored(LONG)?;
    Ok(())
}

#[test]
fn a_connection_that_may_lose_commits_is_refused() -> Result {
    let place = Place::new()?;
    let mut inbox = place.inbox("127.0.0.1:0")?.allow(&place.pi3("*")?)?;
    let link = place.link(&inbox)?;
    let receipt = link.put("orders", b"tea")?;
    let mut db = place.db()?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    let batch = inbox.next_within(LONG)?.ok_or("nothing came")?;
    let tx = db.transaction()?;
    assert!(matches!(batch.accept(&tx).err(), Some(StoreError::Durability { .. })));
    drop(tx);
    drop(batch);
    db.pragma_update(None, "synchronous", "FULL")?;
    assert_eq!(take(&mut db, &mut inbox)?, [0]);
    receipt.stored(LONG)?;
    Ok(())
}

#[test]
fn an_inbox_that_keeps_records_needs_no_application() -> Result {
    let place = Place::new()?;
    let cursors = Cursors::sqlite(place.path("kept.db"))?.keep_records();
    let inbox = Inbox::bind("127.0.0.1:0", place.key("hub.key")?, cursors)?.allow(&place.pi3("*")?)?;
    place.link(&inbox)?.put_many("orders", (0..100).map(|n: u8| [n]))?.stored(LONG)?;
    let db = rusqlite::Connection::open(place.path("kept.db"))?;
    let count: i64 = db.query_row("SELECT count(*) FROM stayfast_records", [], |row| row.get(0))?;
    assert_eq!(count, 100);
    Ok(())
}

#[test]
fn a_key_that_others_may_read_is_refused() -> Result {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("edge.key");
    assert_eq!(Identity::load(&path).err(), Some(IdentityError::NotFound(path.clone())));
    let made = Identity::load_or_create(&path)?;
    assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    assert_eq!(Identity::load(&path)?.public(), made.public());
    assert!(matches!(Identity::create(&path), Err(IdentityError::Io { .. })), "a key is never written over");
    for mode in [0o640, 0o604, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        let error = Identity::load_or_create(&path).err().ok_or("taken")?;
        assert_eq!(error, IdentityError::Exposed { path: path.clone(), mode });
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    fs::write(&path, made.public().to_string())?;
    assert!(matches!(Identity::load(&path), Err(IdentityError::Malformed { .. })));
    let files: Vec<_> = fs::read_dir(dir.path())?.collect();
    assert_eq!(files.len(), 1, "nothing is left behind: {files:?}");
    Ok(())
}

#[test]
fn mistakes_are_told_where_they_are_made() -> Result {
    let place = Place::new()?;
    let outbox = |name: &str| Outbox::open(place.path(name));
    let none = Link::new(Identity::generate()?, outbox("a.db")?).spawn();
    assert!(matches!(none.err(), Some(LinkError::NoPeer)));
    let bad = Link::new(Identity::generate()?, outbox("b.db")?).to("hub:4711", "not a key").spawn();
    assert!(matches!(bad.err(), Some(LinkError::Key(_))));
    let secret = fs::read_to_string({
        place.key("c.key")?;
        place.path("c.key")
    })?;
    let error = Link::new(Identity::generate()?, outbox("c.db")?).to("hub:4711", &secret).spawn().err();
    assert!(error.is_some_and(|e| e.to_string().contains("keep this line to yourself")));
    assert!(
        matches!(place.inbox("hub.example:4711").err().map(|e| e.downcast::<BindError>()), Some(Ok(error)) if matches!(*error, BindError::Address(_)))
    );

    let list = place.path("authorized");
    let lines = |text: &str| -> Result<AuthorizedError> {
        fs::write(&list, text)?;
        Ok(place.inbox("127.0.0.1:0")?.authorized(&list).err().ok_or("taken")?)
    };
    let (a, b) = (Identity::generate()?.public(), Identity::generate()?.public());
    for (text, at, what) in [
        (format!("\n{a}\n"), 2, "name"),
        (format!("{a} one\n{b} one\n"), 2, "name"),
        (format!("{a} one\n{a} two\n"), 2, "key"),
        (format!("{a},{b} one\n{b} two\n"), 2, "key"),
        (format!("{a} one in=x out=y\n"), 1, "out=y"),
        ("nonsense one\n".to_string(), 1, "key"),
    ] {
        let error = lines(&text)?;
        assert!(matches!(error, AuthorizedError::Line { line, .. } if line == at), "{text}: {error}");
        assert!(error.to_string().contains(what), "{text}: {error}");
    }
    let missing = place.inbox("127.0.0.1:0")?.authorized(Path::new("/nowhere/authorized")).err();
    assert!(missing.is_some_and(|e| e.to_string().contains("stayfast authorize")));
    Ok(())
}
