// SPDX-License-Identifier: Apache-2.0
extension PrometheusRegistry {
  /// The media type of `text`.
  package static let mediaType = "text/plain; version=0.0.4; charset=utf-8"

  /// All values in the text format of Prometheus, version 0.0.4, sorted by name and labels.
  /// - Parameter descriptions: the help text of each metric, by its name.
  package func text(_ descriptions: [String: String] = [:]) -> String {
    var text = ""
    var name: String?
    for (series, metric) in all {
      if series.name != name {
        name = series.name
        if let description = descriptions[series.name] {
          text += "# HELP \(series.name) \(description.escaped(quotes: false))\n"
        }
        text += "# TYPE \(series.name) \(metric.kind)\n"
      }
      text += metric.lines(of: series)
    }
    return text
  }
}

extension PrometheusRegistry.Metric {
  fileprivate var kind: String {
    switch self {
    case .counter: "counter"
    case .gauge: "gauge"
    case .histogram: "histogram"
    }
  }

  fileprivate func lines(of series: PrometheusRegistry.Series) -> String {
    switch self {
    case .counter(let counter): series.line("", value: "\(counter.value)")
    case .gauge(let gauge): series.line("", value: number(gauge.value))
    case .histogram(let histogram): lines(of: series, histogram.values)
    }
  }

  private func lines(
    of series: PrometheusRegistry.Series, _ values: PrometheusRegistry.Histogram.Values
  ) -> String {
    var text = ""
    var total: Int64 = 0
    let bounds = PrometheusRegistry.Histogram.bounds.map(number) + ["+Inf"]
    for (bound, count) in zip(bounds, values.counts) {
      total += count
      text += series.line("_bucket", bound: bound, value: "\(total)")
    }
    return text + series.line("_sum", value: number(values.sum)) + series.line("_count", value: "\(total)")
  }

  private func number(_ value: Double) -> String {
    switch value {
    case .infinity: "+Inf"
    case -.infinity: "-Inf"
    case _ where value.isNaN: "NaN"
    case _ where value == value.rounded() && value.magnitude < 1e15: "\(Int64(value))"
    default: "\(value)"
    }
  }
}

extension PrometheusRegistry.Series {
  fileprivate func line(_ suffix: String, bound: String? = nil, value: String) -> String {
    let pairs =
      labels.map { "\($0.name)=\"\($0.value.escaped(quotes: true))\"" } + (bound.map { ["le=\"\($0)\""] } ?? [])
    return "\(name)\(suffix)\(pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}") \(value)\n"
  }
}

extension String {
  fileprivate func escaped(quotes: Bool) -> String {
    var escaped = ""
    for character in unicodeScalars {
      switch character {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\"" where quotes: escaped += "\\\""
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }
}
