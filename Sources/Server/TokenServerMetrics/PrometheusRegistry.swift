// SPDX-License-Identifier: Apache-2.0
package import CoreMetrics
import Synchronization

/// The values of all metrics of this process, for swift-metrics. A counter is a counter, a meter or a
/// recorder without aggregation is a gauge, and a timer or an aggregating recorder is a histogram, in seconds.
package final class PrometheusRegistry: MetricsFactory {
  /// A metric with one set of labels.
  struct Series: Hashable, Comparable {
    let name: String
    let labels: [Label]

    struct Label: Hashable {
      let name: String
      let value: String
    }

    /// - Parameters:
    ///   - label: the metric's name; characters that Prometheus does not accept become "_".
    init(_ label: String, _ dimensions: [(String, String)]) {
      name = Self.accepted(label)
      labels = dimensions.map { Label(name: Self.accepted($0.0), value: $0.1) }.sorted { $0.name < $1.name }
    }

    private static func accepted(_ name: String) -> String {
      func isAccepted(_ scalar: Unicode.Scalar) -> Bool {
        ("a"..."z").contains(scalar) || scalar == "_" || ("0"..."9").contains(scalar) || ("A"..."Z").contains(scalar)
      }
      // All names of this program.
      if name.unicodeScalars.allSatisfy(isAccepted) { return name }
      return String(name.map { $0.unicodeScalars.allSatisfy(isAccepted) ? $0 : "_" })
    }

    static func < (left: Series, right: Series) -> Bool {
      left.name == right.name
        ? left.labels.map(\.value).lexicographicallyPrecedes(right.labels.map(\.value)) : left.name < right.name
    }
  }

  enum Metric {
    case counter(Counter)
    case gauge(Gauge)
    case histogram(Histogram)
  }

  /// The number of series at which new ones are no longer stored: labels come from this program, but a mistake must not
  /// use up the memory.
  static let mostSeries = 2000

  private let metrics = Mutex<[Series: Metric]>([:])

  package init() {}

  var all: [(series: Series, metric: Metric)] {
    metrics.withLock { $0.map { ($0.key, $0.value) } }.sorted { $0.series < $1.series }
  }

  /// Returns the stored metric of this series, or stores a new one.
  private func find<Kind: Sendable>(
    _ label: String, _ dimensions: [(String, String)], _ new: Kind, _ wrap: (Kind) -> Metric,
    _ unwrap: (Metric) -> Kind?
  ) -> Kind {
    let series = Series(label, dimensions)
    return metrics.withLock { metrics in
      if let known = metrics[series].flatMap(unwrap) { return known }
      if metrics[series] == nil, metrics.count < Self.mostSeries { metrics[series] = wrap(new) }
      return new
    }
  }

  private func gauge(_ label: String, _ dimensions: [(String, String)]) -> Gauge {
    find(label, dimensions, Gauge(), Metric.gauge) { if case .gauge(let known) = $0 { known } else { nil } }
  }

  private func histogram(_ label: String, _ dimensions: [(String, String)]) -> Histogram {
    find(label, dimensions, Histogram(), Metric.histogram) { if case .histogram(let known) = $0 { known } else { nil } }
  }

  package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
    find(label, dimensions, Counter(), Metric.counter) { if case .counter(let known) = $0 { known } else { nil } }
  }

  package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { gauge(label, dimensions) }

  package func makeRecorder(
    label: String, dimensions: [(String, String)], aggregate: Bool
  ) -> any RecorderHandler {
    if aggregate { histogram(label, dimensions) } else { gauge(label, dimensions) }
  }

  package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
    histogram(label, dimensions)
  }

  // A series stays until the process ends: Prometheus expects counters that only grow.
  package func destroyCounter(_ handler: any CounterHandler) {}
  package func destroyMeter(_ handler: any MeterHandler) {}
  package func destroyRecorder(_ handler: any RecorderHandler) {}
  package func destroyTimer(_ handler: any TimerHandler) {}
}
