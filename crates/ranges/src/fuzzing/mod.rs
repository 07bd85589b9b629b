//! Operations, oracles and checks, for tests and fuzz targets.
//!
//! Each module has an operation type, a naive model that is obviously right, and a `check` that runs
//! any sequence of operations on both and panics where they differ.

pub mod range_set;
pub mod reassembler;

pub use stayfast_testkit::Ops;

/// Checks random operations, and that there were many: a generator that gives up would make the test an empty one.
#[cfg(test)]
fn check_many<T>(check: fn(&[T]))
where
    T: core::fmt::Debug + for<'a> arbitrary::Arbitrary<'a> + 'static,
{
    let count = core::sync::atomic::AtomicUsize::new(0);
    bolero::check!().with_arbitrary::<Ops<T>>().with_max_len(2_048).with_iterations(300).for_each(|Ops(ops)| {
        count.fetch_add(ops.len(), core::sync::atomic::Ordering::Relaxed);
        check(ops);
    });
    assert!(count.into_inner() > 10_000);
}
