//! Cancelled calls.

use std::future::pending;
use std::sync::mpsc;

use ctx_core::ErrorKind;
use tokio::sync::oneshot;

use super::{home, server};

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_ends_while_its_work_continues() {
    let home = home();
    let server = server(home.path());
    let (begun, has_begun) = oneshot::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (cancel, cancelled) = oneshot::channel::<()>();
    let (done, is_done) = oneshot::channel();
    let call = server.run_blocking(
        async {
            cancelled.await.unwrap();
        },
        move |_| {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            done.send(()).unwrap();
            Ok(())
        },
    );
    let (ended, ()) = tokio::join!(call, async {
        has_begun.await.unwrap();
        cancel.send(()).unwrap();
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    go_on.send(()).unwrap();
    is_done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_beyond_the_limit_is_refused_and_a_later_one_is_served() {
    let home = home();
    let server = server(home.path());
    let (go_on, may_go_on) = tokio::sync::watch::channel(false);
    let mut calls = Vec::new();
    loop {
        let mut waits = may_go_on.clone();
        let server = server.clone();
        let (refusal, is_refused) = oneshot::channel();
        let call = tokio::spawn(async move {
            let call = server.run_blocking(pending(), move |_| {
                let handle = tokio::runtime::Handle::current();
                assert!(handle.block_on(waits.wait_for(|&go| go)).is_ok());
                Ok(())
            });
            let mut call = std::pin::pin!(call);
            let first = futures_util::poll!(&mut call);
            refusal.send(first.is_ready()).unwrap();
            match first {
                std::task::Poll::Ready(ended) => ended,
                std::task::Poll::Pending => call.await,
            }
        });
        if is_refused.await.unwrap() {
            let refused = call.await.unwrap().unwrap_err();
            assert_eq!((refused.kind(), refused.is_retryable()), (ErrorKind::Locked, true));
            break;
        }
        calls.push(call);
        assert!(calls.len() < 1_000, "no call was refused");
    }
    go_on.send(true).unwrap();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    server.run_blocking(pending(), |_| Ok(())).await.unwrap();
}
