//! `ctx serve`.

mod background;
mod service;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use ctx_server::http::{Bound, Shutdown};
use ctx_server::running::{Registration, RunningServer, running, wait_until_ended};
use ctx_terminal::out::Out;
use ctx_terminal::shutdown;
use serde_json::json;

pub(crate) use service::{Receiver, Service};

use crate::args::{Global, Serve};
use crate::setup;

/// How long a new server waits for another process that looks whether one runs.
const PATIENCE: Duration = Duration::from_secs(1);

/// The line of a server that is about to take over.
const READY: &str = "ready";

/// How long a server that takes over waits for running answers of the other one.
const LONGEST_GRACE: Duration = Duration::from_secs(3_600);

/// How long a server that takes over waits for the port.
const FREE_PORT: Duration = Duration::from_secs(5);

/// What to do about a port that another server of this home may use.
const RUNS_ALREADY: &str = "a server of this home runs already (`ctx serve --status`): `ctx serve \
                            --stop` ends it, --background --replace takes over, --listen 127.0.0.1:0 \
                            uses a free port";

pub(crate) fn run(global: &Global, args: &Serve, out: &Out) -> anyhow::Result<ExitCode> {
    if args.stop {
        return background::stop(args, out);
    }
    if args.status {
        return background::status(args, out);
    }
    if args.background {
        return background::start(global, args, out);
    }
    background::detach(args);
    let (warnings, notes) = (Out::new(global.quiet), Out::new(global.quiet));
    let service = Service::new(
        setup::config(global)?,
        args,
        Box::new(move |warning| warnings.warn(warning)),
        Box::new(move |note| notes.note(note)),
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(ctx_terminal::failure::runtime_error)?;
    let shutdown = Shutdown::default();
    let (interrupted, terminated) = (shutdown.clone(), shutdown.clone());
    runtime.block_on(async {
        let bound = match args.takes_over {
            true => take_over(&service, args, out).await?,
            false => bind(&service, args).await?,
        };
        let (home, urls) = (service.home.clone(), service.urls());
        let needs_token = service.server.needs_token();
        let service = service.open(&bound)?;
        let upstreams = urls.iter().map(|(name, url)| ((*name).to_owned(), url.clone())).collect();
        let window = args.window.clone();
        let server =
            RunningServer { needs_token, upstreams, window, ..RunningServer::at(bound.address()) };
        let stop_key = server.stop_key.clone();
        let registered = Registration::new(&home, &server, PATIENCE);
        if let Err(error) = &registered
            && error.kind() != ErrorKind::Locked
        {
            out.warn(format!("other commands of ctx will not find this server: {error}"));
        }
        shutdown::on_interrupt(move || interrupted.stop());
        shutdown::on_term(move || terminated.stop());
        let announced = announce(urls, &bound, args, out);
        // The process that started a detached one may be gone.
        if !args.detached {
            announced?;
        }
        let stop_key = stop_key.filter(|_| registered.is_ok());
        service.serve(bound, shutdown, stop_key).await;
        anyhow::Ok(())
    })?;
    // Summaries in progress must not delay the exit.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Listens, and waits until the other server has ended.
async fn take_over(service: &Service, args: &Serve, out: &Out) -> anyhow::Result<Bound> {
    service.upstreams.check_not(service.server.listen)?;
    let early = bind_early(service).await?;
    out.line(READY)?;
    let bound = match early {
        Some(bound) => bound,
        None => bind(service, args).await?,
    };
    // Connections wait in the queue of the port meanwhile.
    wait_until_ended(&service.home, LONGEST_GRACE)?;
    Ok(bound)
}

/// Listens before the other server ends, unless both have the same port: if the address cannot be
/// used, the other one stays.
async fn bind_early(service: &Service) -> anyhow::Result<Option<Bound>> {
    let port = service.server.listen.port().to_string();
    service.server.check_token()?;
    match service.server.clone().bind().await {
        Err(error)
            if is_in_use(&error)
                && running(&service.home)?.is_some_and(|other| other.port() == Some(&*port)) =>
        {
            Ok(None)
        }
        bound => Ok(Some(bound?)),
    }
}

/// Listens; a server that takes over waits until the other one has left the port.
async fn bind(service: &Service, args: &Serve) -> anyhow::Result<Bound> {
    let until = tokio::time::Instant::now() + FREE_PORT;
    loop {
        match service.server.clone().bind().await {
            Err(error) if args.takes_over && is_in_use(&error) => {
                if tokio::time::Instant::now() > until {
                    return Err(error.into());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) if is_in_use(&error) && running(&service.home)?.is_some() => {
                return Err(error.hint(RUNS_ALREADY).into());
            }
            bound => return Ok(bound?),
        }
    }
}

fn is_in_use(error: &Error) -> bool {
    let source =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    source.is_some_and(|cause| cause.kind() == io::ErrorKind::AddrInUse)
}

/// Says where it listens, and where requests of each API are sent.
fn announce(
    urls: [(&'static str, String); 4],
    bound: &Bound,
    args: &Serve,
    out: &Out,
) -> io::Result<()> {
    if args.json {
        let upstreams: serde_json::Map<_, _> =
            urls.into_iter().map(|(name, url)| (name.to_owned(), url.into())).collect();
        return out.line(json!({ "url": bound.url(), "upstreams": upstreams }).to_string());
    }
    out.line(format!("ctx listens on {}", bound.url()))?;
    for (name, url) in urls {
        out.note(format!("{name} -> {url}"));
    }
    out.note(format!("the inspector is at {}/", bound.url()));
    Ok(())
}
