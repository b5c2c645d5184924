"""Pages of lists in the API."""

from rest_framework.exceptions import ValidationError
from rest_framework.pagination import PageNumberPagination


class Pages(PageNumberPagination):
    """`?page=2&page_size=20`."""

    page_size_query_param = "page_size"
    max_page_size = 500

    def get_page_size(self, request):
        """Refuses what is not a size, where REST framework would take its default without a word."""
        sent = request.query_params.get(self.page_size_query_param)
        if sent is not None and not (sent.isascii() and sent.isdigit() and 0 < len(sent) < 10 and int(sent)):
            raise ValidationError({self.page_size_query_param: f"'{sent[:40]}' is not a whole number from 1 on."})
        return super().get_page_size(request)
