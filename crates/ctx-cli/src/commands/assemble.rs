//! `ctx assemble`.

use std::process::ExitCode;
use std::sync::Arc;

use ctx_core::{Action, AssembleRequest, Kept, Manifest, SequentialIds, Timestamp, TurnContext};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::args::{Assemble, Global, Shape};
use crate::out::{BOLD, DIM, Out, table, thousands};
use crate::setup;

#[derive(Serialize)]
struct Assembled {
    engine: String,
    messages: Box<RawValue>,
    manifest: Manifest,
}

pub(crate) fn run(global: &Global, args: Assemble, out: &Out) -> anyhow::Result<ExitCode> {
    let transcript = setup::open(&args.session, out)?;
    let fitted = setup::fit(global, &args.fit, &transcript, out)?;
    let entries = setup::entries(&transcript, args.at.as_deref(), args.ignore_compactions)?;
    let mut view = ctx_core::ContextView::new(fitted.ledger);
    let last = entries.iter().rev().find_map(|e| e.timestamp());
    for entry in &entries {
        view.append(entry.clone())?;
    }
    let turn = TurnContext {
        now: Timestamp(jiff::Timestamp::now().as_millisecond()),
        last_request: last,
        ids: Arc::new(SequentialIds::default()),
        profile: fitted.profile,
    };
    let session_id = transcript.header().id.clone().unwrap_or_default();
    let request = AssembleRequest { session_id, view, turn };
    let mut view = setup::block_on(fitted.engine.assemble(request))?.view;
    view.finish()?;
    let manifest = view.manifest();
    if args.json {
        let engine = fitted.engine.info().id.to_string();
        out.json(&Assembled { engine, messages: messages(&view, args.to)?, manifest })?;
    } else {
        print(&manifest, out)?;
    }
    Ok(ExitCode::SUCCESS)
}
