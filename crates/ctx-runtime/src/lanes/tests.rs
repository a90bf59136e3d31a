use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::*;

fn key(name: &str) -> SessionKey {
    format!("agent:{name}:main").parse().unwrap()
}

/// Fails if `work` deadlocks; the timeout is long enough for any machine.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("no deadlock")
}

#[tokio::test]
async fn work_in_a_session_runs_one_at_a_time_in_order_of_arrival() {
    let lanes = Arc::new(Lanes::default());
    let order = Arc::new(Mutex::new(Vec::new()));
    let at_work = Arc::new(AtomicUsize::new(0));
    let all = (0..20).map(|n| {
        let (lanes, order, at_work) = (lanes.clone(), order.clone(), at_work.clone());
        async move {
            let work = async {
                assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, Ordering::SeqCst);
                locked(&order).push(n);
                Ok(())
            };
            lanes.run(key("a"), work).await.unwrap();
        }
    });
    in_time(futures_util::future::join_all(all)).await;
    assert_eq!(*locked(&order), (0..20).collect::<Vec<_>>());
    assert!(lanes.busy().is_empty(), "unused lanes are removed");
}

#[tokio::test]
async fn the_limit_bounds_concurrent_work_of_different_sessions() {
    let lanes = Arc::new(Lanes::new(2));
    let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let all = (0..12).map(|n| {
        let (lanes, at_work, most) = (lanes.clone(), at_work.clone(), most.clone());
        async move {
            let work = async {
                let now = at_work.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                tokio::task::yield_now().await;
                at_work.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            lanes.run(key(&format!("s{n}")), work).await.unwrap();
        }
    });
    in_time(futures_util::future::join_all(all)).await;
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_turn_that_enters_its_own_lane_is_refused() {
    let lanes = Lanes::new(1);
    let inner = lanes.run(key("a"), async {
        let again = lanes.run(key("a"), async { Ok(()) }).await;
        let error = again.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let message = error.to_string();
        assert!(message.contains("agent:a:main -> agent:a:main"), "{message}");
        Ok(7)
    });
    assert_eq!(in_time(inner).await.unwrap(), 7);
}

#[tokio::test]
async fn a_waiting_turn_releases_its_permit() {
    let lanes = Lanes::new(1);
    let inner = lanes.run(key("a"), async {
        lanes.run(key("b"), async { lanes.run(key("c"), async { Ok(3) }).await }).await
    });
    assert_eq!(in_time(inner).await.unwrap(), 3);
}

#[tokio::test]
async fn a_turn_can_wait_for_a_session_that_waits_for_a_permit() {
    let lanes = Arc::new(Lanes::new(1));
    let began = Arc::new(Notify::new());
    let outer = {
        let (lanes, began) = (lanes.clone(), began.clone());
        tokio::spawn(async move {
            let (inner, began) = (lanes.clone(), began.clone());
            let work = async move {
                began.notify_one();
                // Wait until the other turn is in its lane without a permit.
                while inner.busy().len() < 2 {
                    tokio::task::yield_now().await;
                }
                inner.run(key("b"), async { Ok("inner") }).await
            };
            lanes.run(key("a"), work).await
        })
    };
    began.notified().await;
    let other = lanes.run(key("b"), async { Ok("other") });
    let (other, outer) = in_time(async { tokio::join!(other, outer) }).await;
    assert_eq!(other.unwrap(), "other");
    assert_eq!(outer.unwrap().unwrap(), "inner");
}

#[tokio::test]
async fn one_of_two_turns_that_wait_for_each_other_is_refused() {
    let lanes = Arc::new(Lanes::default());
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let turn = |mine: &'static str, others: &'static str| {
        let (lanes, both) = (lanes.clone(), both.clone());
        tokio::spawn(async move {
            let inner = lanes.clone();
            let work = async move {
                both.wait().await;
                inner.run(key(others), async { Ok(()) }).await
            };
            lanes.run(key(mine), work).await
        })
    };
    let (a, b) = in_time(async { tokio::join!(turn("a", "b"), turn("b", "a")) }).await;
    let refused: Vec<_> = [a.unwrap(), b.unwrap()].into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0].kind(), ErrorKind::Conflict);
    assert!(lanes.busy().is_empty());
}

#[tokio::test]
async fn a_carried_task_counts_as_part_of_the_turn() {
    let lanes = Arc::new(Lanes::new(1));
    let inner = lanes.clone();
    let outer = lanes.run(key("a"), async move {
        let asks = async move { inner.run(key("a"), async { Ok(()) }).await };
        Ok(tokio::spawn(Lanes::carry(asks)).await.unwrap().unwrap_err().kind())
    });
    assert_eq!(in_time(outer).await.unwrap(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_dropped_turn_leaves_its_lane() {
    let lanes = Lanes::new(1);
    let never = lanes.run(key("a"), std::future::pending::<Result<()>>());
    assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
    let nested = lanes.run(key("a"), async {
        let never = lanes.run(key("b"), std::future::pending::<Result<()>>());
        assert!(tokio::time::timeout(Duration::from_millis(1), never).await.is_err());
        lanes.run(key("b"), async { Ok(1) }).await
    });
    assert_eq!(in_time(nested).await.unwrap(), 1);
    assert!(lanes.busy().is_empty());
}

#[tokio::test]
async fn a_turn_that_reacquires_its_permit_does_not_block_the_lane_it_left() {
    let lanes = Lanes::new(1);
    let outer = lanes.run(key("a"), async {
        let inner = async {
            // Wait until the third turn waits for the permit.
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        lanes.run(key("b"), inner).await
    });
    let third = lanes.run(key("c"), async {
        let mut busy = lanes.busy();
        busy.sort();
        Ok(busy)
    });
    let (outer, busy) = in_time(async { tokio::join!(outer, third) }).await;
    outer.unwrap();
    assert_eq!(busy.unwrap(), [key("a"), key("c")]);
}
