//! `ctx inspect`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_server::http::{Server, Shutdown};
use ctx_server::inspect::replay::{self, Replays, With};
use ctx_server::inspect::{Inspector, MemorySearch, Source};
use ctx_session::paths::Home;
use serde::Serialize;

use crate::args::{Fit, Global, Inspect};
use crate::ending;
use crate::failure::misuse;
use crate::out::Out;
use crate::selection;
use crate::setup;

/// So long the end waits for answers that are being written.
const GRACE: Duration = Duration::from_secs(2);

/// Where the page is.
#[derive(Serialize)]
struct Address {
    url: String,
    /// The session that was named, in the API.
    session: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Inspect, out: &Out) -> anyhow::Result<ExitCode> {
    selection::check(&args.fit)?;
    let (config, home) = (setup::config(global)?, Home::from_env()?);
    let file = args.session.as_deref().map(Path::new).filter(|path| path.is_file());
    let files: Vec<PathBuf> = file.map(Path::to_owned).into_iter().collect();
    let fit = fit_of(&args.fit)?;
    let memory = MemorySearch::new(config.clone(), home.clone());
    let replays = Arc::new(Replays::new(With { config, home, fit }, files, true));
    let session = args.session.as_deref().map(|named| replays.find(named)).transpose()?;
    let token = setup::token(args.token.as_deref())?;
    let shutdown = Shutdown::default();
    let inspector = Inspector::new(vec![replays as Arc<dyn Source>])
        .with_memory(memory)
        .with_token(token.is_some())
        .with_shutdown(shutdown.clone());
    let stop = shutdown.clone();
    ending::on_interrupt(move || stop.stop());
    let server = Server { token, grace: GRACE, ..Server::new(args.listen) };
    let served = setup::block_on_threads(async {
        let bound = server.bind().await?;
        let hash = session.as_ref().map(|id| format!("#/s/{id}")).unwrap_or_default();
        let address = Address { url: format!("{}/{hash}", bound.url()), session };
        match args.json {
            true => out.json(&address)?,
            false => out.line(&address.url)?,
        }
        out.note("Ctrl-C ends it");
        bound.serve(inspector.router_alone(), shutdown).await;
        Ok(())
    });
    served.map(|()| ExitCode::SUCCESS)
}

/// What every session is fitted to.
fn fit_of(fit: &Fit) -> anyhow::Result<replay::Fit> {
    Ok(replay::Fit {
        window: fit.window.as_deref().map(setup::parse_tokens).transpose().map_err(misuse)?,
        engine: fit.engine.clone(),
        agent: fit.agent.clone(),
        profile: fit.profile,
        counter: fit.counter,
        model: fit.model.clone(),
    })
}
