//! Promise 3: a job whose lease ran out is delivered again once for each lease that ran out.

mod support;

use std::time::Duration;

use support::{Server, worker};

#[tokio::test]
async fn an_expired_lease_is_delivered_again() {
    let server = Server::start().await;
    server.push("mail", b"hello").await;
    let first = worker(&server).pull("mail", 30).await.unwrap();
    tokio::time::sleep(Duration::from_millis(80)).await;
    let second = worker(&server).pull("mail", 60_000).await.unwrap();
    assert_eq!(first.id, second.id);
    assert_eq!(second.deliveries, 2);
}

#[tokio::test]
async fn redelivery_happens_once() {
    let server = Server::start().await;
    let ids: Vec<_> = server.push_many("mail", 64).await;
    let slow = worker(&server);
    for _ in &ids {
        slow.pull("mail", 40).await.unwrap();
    }
    // Half of them are acknowledged about when their leases run out.
    tokio::time::sleep(Duration::from_millis(38)).await;
    let mut done = 0;
    for id in ids.iter().step_by(2) {
        done += usize::from(slow.ack(*id).await.is_ok());
    }
    tokio::time::sleep(Duration::from_millis(60)).await;
    let fast = worker(&server);
    let mut again = 0;
    while let Some(job) = fast.pull("mail", 60_000).await {
        assert_eq!(job.deliveries, 2, "job {} came too often", job.id);
        again += 1;
    }
    assert_eq!(done + again, ids.len(), "acknowledged {done}, delivered again {again}");
}

#[tokio::test]
async fn a_lost_connection_gives_its_jobs_back() {
    let server = Server::start().await;
    server.push_many("mail", 3).await;
    let lost = worker(&server);
    for _ in 0..3 {
        lost.pull("mail", 60_000).await.unwrap();
    }
    drop(lost);
    let other = worker(&server);
    for _ in 0..3 {
        assert!(other.pull_wait("mail", 60_000).await.is_some());
    }
}
