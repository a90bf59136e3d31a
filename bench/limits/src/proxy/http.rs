//! The ends of a proxied request: a client, a provider, and the relay that ctx is compared with.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// What the provider answers, as OpenAI does.
const ANSWER: &str = "data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":null}]}\n\n\
    data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

/// Why a body could not be sent.
type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// Connections to an address, each of which has one request at a time.
pub(super) struct Pool<B> {
    address: SocketAddr,
    idle: Mutex<Vec<SendRequest<B>>>,
}

impl<B> Pool<B>
where
    B: Body<Data: Send, Error: Into<BodyError>> + Send + 'static,
{
    pub(super) fn new(address: SocketAddr) -> Arc<Self> {
        Arc::new(Self { address, idle: Mutex::default() })
    }

    /// Sends a request over an idle connection, or over a new one.
    async fn send(&self, request: Request<B>) -> Result<Response<Incoming>> {
        let mut connection = match self.idle() {
            Some(connection) => connection,
            None => connect(self.address).await?,
        };
        let response = connection.send_request(request).await?;
        // It is ready as soon as the response is read.
        self.lock().push(connection);
        Ok(response)
    }

    fn idle(&self) -> Option<SendRequest<B>> {
        let mut idle = self.lock();
        if let Some(at) = idle.iter().rposition(SendRequest::is_ready) {
            return Some(idle.remove(at));
        }
        idle.retain(|connection| !connection.is_closed());
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SendRequest<B>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect<B>(address: SocketAddr) -> Result<SendRequest<B>>
where
    B: Body<Data: Send, Error: Into<BodyError>> + Send + 'static,
{
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

fn request(address: SocketAddr, body: Bytes) -> Result<Request<Full<Bytes>>> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat/completions")
        .header(HOST, address.to_string())
        .header(AUTHORIZATION, "Bearer k")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))?;
    Ok(request)
}

/// Sends a body, and returns the milliseconds from when that was due to the first byte of the answer.
pub(super) async fn ask(pool: Arc<Pool<Full<Bytes>>>, body: Bytes, due: Instant) -> Result<f64> {
    let answer = pool.send(request(pool.address, body)?).await?;
    read(answer, due).await
}

async fn read(mut answer: Response<Incoming>, due: Instant) -> Result<f64> {
    ensure!(answer.status().is_success(), "the answer is {}", answer.status());
    answer.body_mut().frame().await.context("an empty answer")??;
    let took = due.elapsed();
    while let Some(frame) = answer.body_mut().frame().await {
        frame?;
    }
    Ok(took.as_secs_f64() * 1e3)
}

/// Connects, makes one request, and returns the connection.
pub(super) async fn ask_once(address: SocketAddr, body: Bytes) -> Result<SendRequest<Full<Bytes>>> {
    let mut connection = connect(address).await?;
    let answer = connection.send_request(request(address, body)?).await?;
    read(answer, Instant::now()).await?;
    Ok(connection)
}

/// Returns the same runtime as that of `ctx serve`.
pub(super) fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

/// Starts a provider that reads a request without parsing it, and answers with a short stream.
pub(super) async fn provider() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(serve(listener, answer));
    Ok(address)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>> {
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    let answer = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    Ok(answer.body(Full::new(Bytes::from_static(ANSWER.as_bytes())))?)
}

/// Answers requests until the runtime ends.
async fn serve<F, A, B>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Result<Response<B>>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BodyError>> + Send + 'static,
{
    loop {
        // An error is that of a client that left.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let service = service_fn(answer.clone());
        tokio::spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Passes requests to an upstream, and answers to clients, until the process is killed. Prints its URL as
/// `ctx serve --json` does.
pub(crate) fn relay(upstream: &str) -> Result<()> {
    let upstream = upstream.parse().context("--relay ADDRESS")?;
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let line = serde_json::json!({ "url": format!("http://{}", listener.local_addr()?) });
        writeln!(std::io::stdout(), "{line}")?;
        let pool = Pool::new(upstream);
        let passed = move |request| {
            let pool = pool.clone();
            async move { pool.send(request).await }
        };
        serve(listener, passed).await;
        Ok(())
    })
}
