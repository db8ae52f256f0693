//! `chart`: what was sent over time, the rate in use, and pauses.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use tower_throttle::{
    Quota,
    audit::journal::{Line, Opened},
    engine::{Decision, Step},
};

use crate::{
    Error,
    follow::{Caller, Seen, Watch, follow},
    pauses::{Span, Tracker},
    source::files,
    text::{self, short},
};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 24.0;
const ABOVE: f64 = 44.0;
const BELOW: f64 = 30.0;
const LEGEND: f64 = 36.0;
const SENT: &str = "#3f7fbf";
const PAUSE: &str = "#f6d8c6";
const RATE: &str = "#1d1d1f";
const TEXT: &str = "#333333";
const GRID: &str = "#dddddd";
/// More than can be seen. When there are more, two become one of twice the length.
const BINS: usize = 900;
const SECOND: u64 = 1_000_000_000;

pub(crate) fn run(paths: &[PathBuf], to: &Path, out: &mut impl Write) -> Result<(), Error> {
    let mut panels = Panels::default();
    let gaps = follow(&files(paths)?, &mut panels)?;
    fs::write(to, panels.svg()).map_err(|error| format!("{}: {error}", to.display()))?;
    writeln!(out, "wrote {}", to.display())?;
    for line in gaps.lines() {
        writeln!(out, "Note: {line}.")?;
    }
    Ok(())
}

#[derive(Default)]
struct Panels(BTreeMap<String, Panel>);

struct Panel {
    title: String,
    /// When the limiter was opened first and last, by the day's clock.
    first: u64,
    base: u64,
    began: String,
    last: u64,
    step: u64,
    bins: Vec<Bin>,
    /// Credits in a token of the first quota.
    token: f64,
    pauses: Tracker,
    spans: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    sent: u64,
    rate: f64,
}

impl Watch for Panels {
    fn opened(&mut self, name: &str, opened: &Opened, line: &Line) -> Result<(), Error> {
        let wall = text::wall(&line.wall).unwrap_or(0);
        let panel = self.0.entry(name.to_owned()).or_insert_with(|| Panel {
            title: String::new(),
            first: wall,
            base: 0,
            began: line.wall.clone(),
            last: 0,
            step: SECOND,
            bins: Vec::new(),
            token: 1.0,
            pauses: Tracker::default(),
            spans: Vec::new(),
        });
        panel.base = wall.saturating_sub(panel.first).max(panel.last);
        if let Some(span) = panel.pauses.now.take() {
            panel.band(span, 0);
        }
        panel.title = format!("{name}: {}", opened.config.quota);
        panel.token = token(&opened.config.quota);
        Ok(())
    }

    fn step(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        if let Some(panel) = self.0.get_mut(seen.limiter) {
            panel.step(seen);
        }
        Ok(())
    }

    fn over(&mut self, _limiter: &str, _caller: Caller) -> Result<(), Error> {
        Ok(())
    }
}

/// As the engine counts.
fn token(quota: &Quota) -> f64 {
    quota.period().as_nanos() as f64 * 4_294_967_296.0
}

impl Panel {
    fn step(&mut self, seen: &Seen<'_>) {
        if let (Step::SetQuota(0, quota), Decision::Accepted(true)) =
            (&seen.record.step, &seen.record.decision)
        {
            self.token = token(quota);
        }
        let at = self.base.saturating_add(seen.at);
        self.last = self.last.max(at);
        if let Some(span) = self.pauses.step(seen) {
            self.band(span, self.base);
        }
        while at / self.step >= BINS as u64 {
            self.step = self.step.saturating_mul(2);
            self.bins = (self.bins.chunks(2))
                .map(|two| Bin {
                    sent: two.iter().map(|bin| bin.sent).sum(),
                    rate: two.iter().map(|bin| bin.rate).fold(0.0, f64::max),
                })
                .collect();
        }
        let index = (at / self.step) as usize;
        // In between nothing happened, so the rate stayed.
        let rate = self.bins.last().map_or(0.0, |bin| bin.rate);
        while self.bins.len() <= index {
            self.bins.push(Bin { sent: 0, rate });
        }
        if let Some(bin) = self.bins.get_mut(index) {
            bin.sent += u64::from(matches!(seen.record.decision, Decision::Sent(_)));
            bin.rate = seen.record.after.rate as f64 * 1e9 / self.token;
        }
    }

    /// Those that cannot be seen apart are drawn as one.
    fn band(&mut self, span: Span, base: u64) {
        let (from, until) = (
            base.saturating_add(span.from),
            base.saturating_add(span.until),
        );
        let apart = self.step / 4;
        match self.spans.last_mut() {
            Some(last) if from <= last.1.saturating_add(apart) => last.1 = last.1.max(until),
            _ => self.spans.push((from, until)),
        }
    }

    fn draw(&self) -> String {
        let length = (self.bins.len().max(1) as u64).saturating_mul(self.step) as f64;
        let x = |at: u64| (at as f64 / length * WIDTH).min(WIDTH);
        let each = |count: u64| count as f64 * 1e9 / self.step as f64;
        let highest = (self.bins.iter())
            .map(|bin| each(bin.sent).max(bin.rate))
            .fold(0.0, f64::max);
        let top = round_up(highest);
        let y = |rate: f64| HEIGHT - (rate / top * HEIGHT).min(HEIGHT);
        let mut text = format!(
            "<text y=\"-24\" font-size=\"13\" font-weight=\"bold\">{}</text><text y=\"-9\">from {}, {} s a step</text>\n",
            escape(&self.title),
            escape(&self.began),
            short(self.step as f64 / 1e9)
        );
        for &(from, until) in &self.spans {
            let (left, right) = (x(from), x(until));
            let width = (right - left).max(0.5);
            text += &format!(
                "<rect x=\"{left:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{PAUSE}\"/>\n"
            );
        }
        for part in 0..=4 {
            let rate = top * f64::from(part) / 4.0;
            let height = y(rate);
            text += &format!(
                "<path d=\"M0 {height:.1}h{WIDTH}\" stroke=\"{GRID}\"/><text x=\"-6\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                height + 4.0,
                short(rate)
            );
        }
        for part in 0..=6 {
            let share = f64::from(part) / 6.0;
            text += &format!(
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{:.0} s</text>\n",
                share * WIDTH,
                HEIGHT + 16.0,
                share * length / 1e9
            );
        }
        let (mut area, mut line) = (format!("M0 {HEIGHT}"), String::new());
        for (index, bin) in self.bins.iter().enumerate() {
            let (left, right) = (
                x((index as u64).saturating_mul(self.step)),
                x((index as u64 + 1).saturating_mul(self.step)),
            );
            area += &format!("L{left:.1} {:.1}H{right:.1}", y(each(bin.sent)));
            let mark = if index == 0 { 'M' } else { 'L' };
            line += &format!("{mark}{left:.1} {:.1}H{right:.1}", y(bin.rate));
        }
        text + &format!(
            "<path d=\"{area}V{HEIGHT}Z\" fill=\"{SENT}\"/>\n<path d=\"{line}\" fill=\"none\" stroke=\"{RATE}\" stroke-width=\"1.2\" \
             stroke-dasharray=\"5 3\"/>\n"
        )
    }
}

impl Panels {
    fn svg(&mut self) -> String {
        for panel in self.0.values_mut() {
            if let Some(mut span) = panel.pauses.now.take() {
                let base = panel.base;
                span.until = span.until.min(panel.last.saturating_sub(base));
                panel.band(span, base);
            }
        }
        let width = LEFT + WIDTH + RIGHT;
        let height = LEGEND + self.0.len() as f64 * (ABOVE + HEIGHT + BELOW);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"11\" fill=\"{TEXT}\">\n<title>Requests a second, the rate in use, and pauses</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        text += &format!(
            "<rect x=\"{LEFT}\" y=\"12\" width=\"14\" height=\"12\" fill=\"{SENT}\"/><text x=\"{}\" y=\"22\">\
             sent, requests a second</text>\n\
             <rect x=\"{}\" y=\"12\" width=\"14\" height=\"12\" fill=\"{PAUSE}\"/><text x=\"{}\" y=\"22\">pauses</text>\n\
             <path d=\"M{} 18h22\" stroke=\"{RATE}\" stroke-dasharray=\"5 3\"/><text x=\"{}\" y=\"22\">rate in use, first quota</text>\n",
            LEFT + 20.0,
            LEFT + 200.0,
            LEFT + 220.0,
            LEFT + 300.0,
            LEFT + 328.0
        );
        for (index, panel) in self.0.values().enumerate() {
            let y = LEGEND + ABOVE + index as f64 * (ABOVE + HEIGHT + BELOW);
            text += &format!(
                "<g transform=\"translate({LEFT} {y})\">\n{}</g>\n",
                panel.draw()
            );
        }
        text + "</svg>\n"
    }
}

/// The next of 1, 2, 4 and 8 times a power of ten.
fn round_up(highest: f64) -> f64 {
    let power = 10_f64.powf(highest.max(1e-3).log10().floor());
    let fits = [1.0, 2.0, 4.0, 8.0].map(|part| part * power);
    fits.into_iter()
        .find(|top| *top >= highest)
        .unwrap_or(10.0 * power)
}

/// What XML cannot hold at all becomes a question mark.
fn escape(text: &str) -> String {
    let text = text::plain(text);
    let text = text.replace(['\u{fffe}', '\u{ffff}'], "?");
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
