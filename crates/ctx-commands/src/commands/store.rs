//! `ctx store`.

mod check;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use ctx_model::TokioTimer;
use ctx_session::Home;
use ctx_session::key::SessionKey;
use ctx_shared::{SharedSessions, TransferReport, export, import};
use ctx_store::AnyStore;
use ctx_store_postgres::{StoreConfig, StoreStatus, VacuumReport, migrate};
use ctx_terminal::failure::misuse;
use ctx_terminal::format::counted;
use ctx_terminal::out::Out;
use serde::Serialize;

use crate::args::{
    EraseStore, ExportStore, Global, InStore, RemoveFromStore, StoreCommand, VacuumStore,
};
use crate::setup;

pub(crate) fn run(global: &Global, args: &StoreCommand, out: &Out) -> anyhow::Result<ExitCode> {
    match args {
        StoreCommand::Migrate(args) => run_migrate(global, args, out),
        StoreCommand::Check(args) => check::run(global, args, out),
        StoreCommand::Status(args) => run_status(global, args, out),
        StoreCommand::Export(args) => run_export(global, args, out),
        StoreCommand::Import(args) => run_import(global, args, out),
        StoreCommand::Remove(args) => run_remove(global, args, out),
        StoreCommand::Erase(args) => run_erase(global, args, out),
        StoreCommand::Vacuum(args) => run_vacuum(global, args, out),
    }
}

/// Returns the section `store`, with the flags.
fn section(global: &Global, args: &InStore) -> anyhow::Result<StoreConfig> {
    let mut section = StoreConfig::of(&setup::config(global)?)?;
    if let Some(url) = &args.url {
        section.url = Some(url.clone());
    }
    if let Some(tenant) = &args.tenant {
        section.tenant.clone_from(tenant);
    }
    Ok(section)
}

#[derive(Serialize)]
struct Migrated {
    before: i32,
    after: i32,
}

fn run_migrate(global: &Global, args: &InStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = section(global, args)?;
    let url = section.url()?;
    let migrated = out
        .while_waiting("migrating", || setup::block_on(migrate(url)))
        .map(|(before, after)| Migrated { before, after })?;
    out.report(args.json, &migrated, |migrated, out| {
        match (migrated.before, migrated.after) {
            (before, after) if before == after => {
                out.line(format!("the schema has version {after} already"))?;
            }
            (0, after) => {
                out.line(format!("created the schema, version {after}"))?;
                out.aside(
                    "let the program use a role of its own: `create role ctx login password '...' \
                     in role ctx_app`",
                );
            }
            (before, after) => out.line(format!("migrated the schema from {before} to {after}"))?,
        }
        Ok(())
    })
}

fn run_status(global: &Global, args: &InStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = section(global, args)?;
    let status = setup::block_on(async { section.open().await?.status().await })?;
    out.report(args.json, &status, print_status)
}

fn print_status(status: &StoreStatus, out: &Out) -> anyhow::Result<()> {
    let StoreStatus { tenant, version, .. } = status;
    out.line(format!("tenant {tenant}, schema {version}, PostgreSQL {}", status.server))?;
    let (sessions, lines) =
        (counted(count(status.sessions), "session"), counted(count(status.lines), "line"));
    out.line(format!("{sessions}, {lines}, {} bytes", status.bytes))?;
    for lease in &status.leases {
        let wanted = if lease.is_wanted { ", wanted by another host" } else { "" };
        out.line(format!(
            "{} is held by {} for {:.1} s (epoch {}){wanted}",
            lease.key, lease.holder, lease.seconds, lease.epoch
        ))?;
    }
    Ok(())
}

fn run_import(global: &Global, args: &InStore, out: &Out) -> anyhow::Result<ExitCode> {
    let (section, home) = (section(global, args)?, Home::from_env()?);
    let progress = out.waiting("importing");
    let report = setup::block_on(async {
        let store: AnyStore = Arc::new(section.open().await?);
        let mut show = |key: &str| progress.set_message(format!("importing {key}"));
        import(&home, &store, &section.host(), Arc::new(TokioTimer::default()), &mut show).await
    })?;
    progress.finish_and_clear();
    transferred(&report, "imported", args.json, out)
}

fn run_export(global: &Global, args: &ExportStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = section(global, &args.of)?;
    let home = Home::at(&args.output);
    let progress = out.waiting("exporting");
    let report = setup::block_on(async {
        let store: AnyStore = Arc::new(section.open().await?);
        let mut show = |key: &str| progress.set_message(format!("exporting {key}"));
        export(&store, &home, &mut show).await
    })?;
    progress.finish_and_clear();
    transferred(&report, "exported", args.of.json, out)
}

/// Prints the report of a transfer. Sessions that were left out make it fail.
fn transferred(
    report: &TransferReport,
    done: &str,
    json: bool,
    out: &Out,
) -> anyhow::Result<ExitCode> {
    for skipped in &report.skipped {
        out.warn(format!("{}: {}", skipped.key, skipped.reason));
    }
    out.report(json, report, |report, out| {
        let (sessions, lines) = (report.sessions, counted(count(report.lines), "line"));
        let (sessions, copied) = (counted(sessions, "session"), report.copied);
        Ok(out.line(format!("{done} {sessions} with {lines}, {copied} of them new"))?)
    })?;
    Ok(if report.skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[derive(Serialize)]
struct Removed {
    key: String,
}

fn run_remove(global: &Global, args: &RemoveFromStore, out: &Out) -> anyhow::Result<ExitCode> {
    let (section, home) = (section(global, &args.of)?, Home::from_env()?);
    let key: SessionKey = args.key.parse().map_err(misuse)?;
    if args.confirm.as_deref() != Some(&*args.key) {
        let error = Error::new(ErrorKind::InvalidInput, "this removes a session from all hosts")
            .with("session", &key);
        return Err(misuse(error.hint(format!("confirm it: --confirm {key}"))));
    }
    let removed = setup::block_on(async {
        let store: AnyStore = Arc::new(section.open().await?);
        let timer = Arc::new(TokioTimer::default());
        SharedSessions::new(store, &section.host(), home, timer).remove(&key).await
    })?;
    if !removed {
        return Err(Error::new(ErrorKind::NotFound, "the store has no session of this key")
            .with("session", &key)
            .hint("`ctx store export -o FOLDER` writes its sessions to a folder")
            .into());
    }
    out.report(args.of.json, &Removed { key: args.key.clone() }, |removed, out| {
        out.line(format!("removed {}", removed.key))?;
        out.note("`ctx memory forget --session KEY` erases what an agent remembers of a session");
        Ok(())
    })
}

fn run_vacuum(global: &Global, args: &VacuumStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = section(global, &args.of)?;
    let age = Duration::from_secs(u64::from(args.days) * 24 * 60 * 60);
    let report = setup::block_on(async { section.open().await?.vacuum(age).await })?;
    out.report(args.of.json, &report, |report, out| {
        let VacuumReport { logs, forgotten, erasures, leases, hosts, conversations, blobs } =
            *report;
        let parts = [
            (logs, "removed log"),
            (forgotten, "id of a forgotten record"),
            (erasures, "notice of an erasure"),
            (leases, "lease"),
            (hosts, "host"),
            (conversations, "conversation of a proxy"),
            (blobs, "value of a proxy"),
        ];
        let parts = parts.map(|(number, what)| plural(count(number), what));
        Ok(out.line(format!("deleted {}", parts.join(", ")))?)
    })
}

/// Formats a number of things, the first word of which is the noun unless it is the last one.
fn plural(number: usize, what: &str) -> String {
    match what.split_once(" of ") {
        Some((noun, rest)) => format!("{} of {rest}", counted(number, noun)),
        None => counted(number, what),
    }
}

#[derive(Serialize)]
struct Erased {
    rows: u64,
}

fn run_erase(global: &Global, args: &EraseStore, out: &Out) -> anyhow::Result<ExitCode> {
    let section = section(global, &args.of)?;
    if args.confirm.as_deref() != Some(&*section.tenant) {
        let error = Error::new(ErrorKind::InvalidInput, "this erases all sessions of a tenant")
            .with("tenant", &section.tenant);
        return Err(misuse(error.hint(format!("confirm it: --confirm {}", section.tenant))));
    }
    let rows = setup::block_on(async { section.open().await?.erase_tenant().await })?;
    out.report(args.of.json, &Erased { rows }, |erased, out| {
        Ok(out.line(format!("erased {}", counted(count(erased.rows), "row")))?)
    })
}
