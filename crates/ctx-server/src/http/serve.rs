//! Accepts connections and serves requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

use super::Server;
use super::guard::Guard;
use super::shutdown::Shutdown;

/// Timeout for the head of a request.
const HEAD: Duration = Duration::from_secs(30);

/// Pause after a failed accept, for example because no file handle is free.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn run(
    listener: TcpListener,
    router: Router,
    guard: Arc<Guard>,
    shutdown: Shutdown,
    server: &Server,
) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
            () = shutdown.stopped() => break,
        };
        // Small chunks of a stream are sent immediately.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(server.unread));
        let (router, guard) = (router.clone(), guard.clone());
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            answer(router.clone(), guard.clone(), request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::default())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            // A disconnected client is not an error.
            let _ = connection.await;
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(server.grace) => {}
        () = shutdown.immediate() => {}
    }
    // Abort the remaining connections.
    connections.abort_all();
    while connections.join_next().await.is_some() {}
}

async fn answer(
    router: Router,
    guard: Arc<Guard>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    match guard.admit(request) {
        Ok(request) => router.oneshot(request.map(Body::new)).await,
        Err(refused) => Ok(*refused),
    }
}
