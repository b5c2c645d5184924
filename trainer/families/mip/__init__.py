"""Formulate trees as mixed-integer programs: FlowOCT, BendOCT, accelerated BendOCT, OCT, BinOCT."""
