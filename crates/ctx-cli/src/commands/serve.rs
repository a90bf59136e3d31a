//! `ctx serve`.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Tokens};
use ctx_inspector::replay::{ReplayOverrides, ReplaySettings, Replays};
use ctx_inspector::{Inspector, MemorySearch};
use ctx_runtime::SessionSpec;
use ctx_runtime::lifecycle::Bytes;
use ctx_server::http::{Metrics, Server, Shutdown, status_routes};
use ctx_server::proxy::{Family, Proxy, ServerConfig, Settings, Upstreams};
use ctx_server::trace::{Trace, TraceLimits};
use ctx_server::{Host, mcp};
use ctx_session::Home;
use ctx_session::key::FileId;
use serde_json::json;

use crate::args::{Global, Serve};
use crate::failure::misuse;
use crate::out::Out;
use crate::{setup, shutdown};

/// The minimum of `server.maxBodyBytes`.
const LEAST_BODY: u64 = 1_024;

pub(crate) fn run(global: &Global, args: &Serve, out: &Out) -> anyhow::Result<ExitCode> {
    let host = Host { config: setup::config(global)?.for_proxy(), home: Home::from_env()? };
    let mut config: ServerConfig = host.config.section()?;
    if let Some(most) = &args.max_body {
        config.max_body_bytes = body_bytes(most).map_err(misuse)?;
    }
    if let Some(grace) = args.grace {
        config.grace_seconds = grace;
    }
    let listen = args.listen.as_ref().unwrap_or(&config.listen);
    let listen = listen.parse().map_err(|_| {
        misuse(
            Error::new(ErrorKind::InvalidInput, format!("invalid listen address '{listen}'"))
                .hint("give an address and a port, such as 127.0.0.1:8787"),
        )
    })?;
    let upstreams = Upstreams::new(&args.upstreams, &config.upstreams).map_err(misuse)?;
    let window = args.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?;
    let mut server = Server::new(listen);
    server.token = setup::token(args.token.as_deref())?;
    server.hosts.clone_from(&config.hosts);
    server.origins.clone_from(&config.origins);
    server.grace = Duration::from_secs(config.grace_seconds.into());
    let agent = args.agent.as_deref().map(str::parse).transpose().map_err(misuse)?;
    let agent: FileId = agent.unwrap_or_else(FileId::main);
    let wanted = SessionSpec {
        engine: args.engine.clone(),
        agent: Some(agent.to_string()),
        window,
        ..SessionSpec::default()
    };
    let resolved = wanted.resolve(&host.config)?;
    resolved.check_engine().map_err(misuse)?;
    if window.is_some() {
        let by_flag: fn(Tokens) -> String = |minimum| format!("give --window {minimum} or more");
        resolved.check_window(Some(by_flag)).map_err(misuse)?;
    }
    let trace = host.home.root.join("proxy").join("traces");
    let trace = Arc::new(Trace::at(trace, TraceLimits::default())?);
    let tools = mcp::Server::new(mcp::Setup {
        host: host.clone(),
        agent: agent.clone(),
        session: None,
        writes: mcp::Writes::WithToken,
        others: None,
    });
    let (warnings, notes) = (Out::new(global), Out::new(global));
    let settings = Settings {
        host,
        config,
        upstreams: upstreams.clone(),
        window,
        engine: args.engine.clone(),
        agent: Some(agent.to_string()),
        warn: Box::new(move |warning| warnings.warn(warning)),
        note: Box::new(move |note| notes.note(note)),
    };
    let (config, home) = (settings.host.config.clone(), settings.host.home.clone());
    let proxy = Proxy::new(settings, trace, Metrics::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(setup::runtime_error)?;
    let shutdown = Shutdown::default();
    let memory = MemorySearch::new(config.clone(), home.clone());
    let stored = Replays::new(
        ReplaySettings {
            config,
            home,
            fit: ReplayOverrides { window, ..ReplayOverrides::default() },
        },
        Vec::new(),
        true,
    );
    let inspector = Inspector::new(stored, memory, shutdown.clone())
        .with_proxy(proxy.clone())
        .with_token(server.token.is_some());
    let (interrupted, terminated) = (shutdown.clone(), shutdown.clone());
    runtime.block_on(async {
        let bound = server.bind().await?;
        upstreams.check_not(bound.address())?;
        proxy.announce(&bound.url());
        shutdown::on_interrupt(move || interrupted.stop());
        shutdown::on_term(move || terminated.stop());
        let urls = Family::ALL.map(|family| (family.name(), shown(&upstreams, family)));
        match args.json {
            true => {
                let upstreams: serde_json::Map<_, _> =
                    urls.into_iter().map(|(name, url)| (name.to_owned(), url.into())).collect();
                let line = json!({ "url": bound.url(), "upstreams": upstreams });
                out.line(line.to_string())?;
            }
            false => {
                out.line(format!("ctx listens on {}", bound.url()))?;
                for (name, url) in urls {
                    out.note(format!("{name} -> {url}"));
                }
                out.note(format!("the inspector is at {}/", bound.url()));
            }
        }
        let tools = mcp::routes(tools);
        let routes = status_routes(proxy.metrics()).merge(tools).merge(proxy.router());
        let routes = routes.merge(inspector.router());
        bound.serve(routes, shutdown).await;
        anyhow::Ok(())
    })?;
    proxy.settle();
    // Summaries in progress must not delay the exit.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Returns the URL of an upstream, without credentials and query.
fn shown(upstreams: &Upstreams, family: Family) -> String {
    let url = upstreams.base(family);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path().trim_end_matches('/'))
}

/// Parses the maximum size of a request body.
fn body_bytes(text: &str) -> Result<u64, Error> {
    let Bytes(bytes) = text.parse()?;
    match bytes {
        LEAST_BODY.. => Ok(bytes),
        _ => Err(Error::new(ErrorKind::InvalidInput, format!("invalid body size '{text}'"))
            .with("least", LEAST_BODY)
            .hint("use --max-body with a size such as 64M")),
    }
}
