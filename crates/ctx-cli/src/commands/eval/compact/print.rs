//! The terminal output of `ctx eval compact`.

use ctx_eval::eval::bench::BenchReport;

use crate::out::Out;

pub(super) fn print(report: &BenchReport, out: &Out) -> anyhow::Result<()> {
    for arm in &report.arms {
        for cell in &arm.cells {
            let f = &cell.figures;
            let p = |s: ctx_eval::eval::bench::Share| {
                s.share().map_or("-".to_owned(), |s| format!("{:.1}", s * 100.0))
            };
            out.line(format!("{:20} {:?} {:2} tok {:6} strict {} of {} loose {} reach {} files {} todos {} planted {} stale {} wedges {} fail {} ms {:.0} $ {:?} rec {:?}",
                arm.name, cell.setting.budget, cell.setting.rounds, f.tokens / f.histories.max(1), p(f.strict.present), f.strict.present.of, p(f.loose.present), p(f.strict.within_reach), p(f.files), p(f.todos), p(f.planted.statements), f.planted.stale_beside_new, f.wedges, f.failures, f.millis / f.compactions.max(1) as f64, f.cost_usd, (f.receipt.coverage / f.receipt.receipts as f64, f.receipt.gap / f.receipt.receipts as f64)))?;
        }
    }
    Ok(())
}
